# azero on NVIDIA GPUs; the host needs the driver and the NVIDIA Container Toolkit, CUDA's libraries come from pip:
#   docker build --file docker/cuda.Dockerfile --tag azero-cuda .
#   docker run --rm --gpus all --volume azero:/runs azero-cuda train go9 --workdir /runs/go9
FROM python:3.12-slim
COPY . /src
RUN pip install --no-cache-dir --constraint /src/constraints.txt "/src[cuda12]"
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility PYTHONUNBUFFERED=1 XDG_CACHE_HOME=/runs/.cache NUMBA_CACHE_DIR=/runs/.cache/numba
WORKDIR /runs
ENTRYPOINT ["azero"]
CMD ["doctor"]
