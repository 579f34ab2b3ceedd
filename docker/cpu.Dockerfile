# azero on CPUs:  docker build --file docker/cpu.Dockerfile --tag azero .
#                 docker run --rm --interactive --tty --volume azero:/runs azero play go9
FROM python:3.12-slim
RUN apt-get update && apt-get install --yes --no-install-recommends gnugo && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN pip install --no-cache-dir --constraint /src/constraints.txt /src
ENV JAX_PLATFORMS=cpu PYTHONUNBUFFERED=1 XDG_CACHE_HOME=/runs/.cache NUMBA_CACHE_DIR=/runs/.cache/numba PATH=/usr/games:$PATH
WORKDIR /runs
ENTRYPOINT ["azero"]
CMD ["models"]
