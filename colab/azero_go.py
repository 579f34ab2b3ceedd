# ---
# jupyter:
#   accelerator: GPU
#   colab:
#     gpuType: T4
#     name: azero_go.ipynb
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # A computer learns Go from scratch, and you play against it
#
# AlphaGo Zero's method on a small board: the program plays itself and learns from its own games
# alone.
#
# 1. Choose below, then *Runtime > Run all*.
# 2. Watch it learn. 5x5 needs minutes to tens of minutes even without an accelerator; for 7x7
#    choose *Runtime > Change runtime type > T4 GPU*.
# 3. Play against it by clicking.
#
# With *KEEP_ON_DRIVE* the run is kept on your Google Drive. When Colab ends the session, open this
# notebook again and run all cells: the run continues.

# %%
REPOSITORY = ""  # @param {type: "string"}
BOARD = "5x5"  # @param ["5x5", "7x7"]
KEEP_ON_DRIVE = True  # @param {type: "boolean"}
ITERATIONS = 0  # @param {type: "integer"}
# REPOSITORY: the address that `git clone` takes for azero; leave it empty if you have uploaded a
# clone as /content/azero. ITERATIONS: how long to learn, in all; 0 is the experiment's own number
# (100 for 5x5, 1,500 for 7x7).

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

EXPERIMENT = "tictactoe" if SMOKE else {"5x5": "go5", "7x7": "go7"}[BOARD]
WORKDIR = RUNS / EXPERIMENT
# A T4 has no bfloat16 units; how to compute convolutions is chosen for this machine.
FLAGS = [
    "--network.train-dtype",
    "float32",
    "--network.inference-dtype",
    "float32",
    "--network.convolution",
    "auto",
]
if SMOKE:
    FLAGS = ["--config", str(CODE / "configs" / "smoke.toml")]
if ITERATIONS:
    FLAGS += ["--run.iterations", str(ITERATIONS)]
print(WORKDIR)

# %% [markdown]
# ## Learn
#
# The curves are redrawn every few seconds. The Elo curve starts with the first match against an
# earlier network. Stopping the cell saves and stops the run; running the cell again continues it.

# %%
from azero.commands.notebook import Training, play

training = Training(EXPERIMENT, WORKDIR, *FLAGS)
training.follow()

# %% [markdown]
# ## Play
#
# Click a point; you are Black. *hint* shows the network's view of your position. On 5x5 Black can
# win the whole board by opening in the centre. More visits make the network stronger and slower. It
# is the network of the newest checkpoint, so the run above need not be finished.

# %%
board = play(WORKDIR, visits=64, colour="black")

# %% [markdown]
# ## Next steps
#
# * `report.html` in the working directory is a full report with all curves, and sample games to
#   step through.
# * To learn longer, increase *ITERATIONS* above and run the cells below it again. The run
#   continues.
# * 9x9 on Colab's TPU: `azero_tpu.ipynb`.
