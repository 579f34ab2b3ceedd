# ---
# jupyter:
#   accelerator: TPU
#   colab:
#     gpuType: V5E1
#     name: azero_tpu.ipynb
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # 9x9 Go on Colab's TPU
#
# `go9`: AlphaZero's search with 200 simulations and a network of 6 blocks of 128 filters.
# `configs/v5e_1.toml` sizes it for one chip with 16 GB.
#
# 1. *Runtime > Change runtime type > v5e-1 TPU*, choose below, then *Runtime > Run all*.
# 2. A whole run takes longer than a Colab session, so keep it on Google Drive. After a
#    disconnection open this notebook again and run all cells: the run continues from its last
#    checkpoint.
# 3. Play against the newest network at any time. The notebook plays on the machine's CPU; only the
#    run uses the TPU.

# %%
REPOSITORY = ""  # @param {type: "string"}
KEEP_ON_DRIVE = True  # @param {type: "boolean"}
HOURS = 3.0  # @param {type: "number"}
# REPOSITORY: the address that `git clone` takes for azero; leave it empty if you have uploaded a
# clone as /content/azero. HOURS: how long the cell *Learn* runs before it saves and stops.

# %% [markdown]
# ## Install
#
# Colab's JAX supports this machine's accelerator, so it is kept. azero works with every version
# from 0.7.2 on.

# %%
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

ON_COLAB = "google.colab" in sys.modules
CODE = Path("/content/azero") if ON_COLAB else Path.cwd().parent


def versions():
    return {name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "flax", "numpy")}


# An uploaded clone can be imported from here too, as an empty package.
if not any(importlib.metadata.distributions(name="azero")):
    before = versions()
    if not CODE.exists():
        if not REPOSITORY:
            raise SystemExit(
                f"Set REPOSITORY above to the address of azero's git repository, or "
                f"upload a clone of it as {CODE}."
            )
        subprocess.run(
            ["git", "clone", "--quiet", "--depth", "1", REPOSITORY, str(CODE)], check=True
        )
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", f"{CODE}[notebook]"], check=True
    )
    importlib.invalidate_caches()
    print("before:", before)
    if versions() != before:  # the old ones may be loaded already
        raise SystemExit(
            f"These packages were changed, to {versions()}: choose Runtime > Restart session, then "
            "run all cells again."
        )
print("versions:", versions(), "azero", importlib.metadata.version("azero"))

# %% [markdown]
# ## Where the run is kept

# %%
SMOKE = (
    os.environ.get("AZERO_SMOKE") == "1"
)  # the test of this notebook: seconds instead of minutes
RUNS = Path(os.environ.get("AZERO_RUNS", "runs"))
if KEEP_ON_DRIVE and ON_COLAB:
    from google.colab import drive

    drive.mount("/content/drive")
    RUNS = Path("/content/drive/MyDrive/azero")

EXPERIMENT, OVERLAY = ("tictactoe", "smoke.toml") if SMOKE else ("go9", "v5e_1.toml")
WORKDIR = RUNS / EXPERIMENT
FLAGS = ["--config", str(CODE / "configs" / OVERLAY)]
print(WORKDIR)

# %% [markdown]
# ## Learn
#
# Compiling takes the first minutes. The curves are redrawn every few seconds. Stopping the cell
# saves and stops the run; running the cell again continues it.

# %%
from azero.commands.notebook import Training, play

training = Training(EXPERIMENT, WORKDIR, *FLAGS)
training.follow(seconds=3600 * HOURS)

# %% [markdown]
# ## Play
#
# Click a point; you are Black. Komi is 7. More visits make the
# network stronger and slower.

# %%
board = play(WORKDIR, visits=64, colour="black")

# %% [markdown]
# ## Next steps
#
# Running the cell *Learn* again continues for another *HOURS*, today or in a later session. To rent
# a Cloud TPU, with restarts after preemption, see docs/cloud-tpu.md.
