# syntax=docker/dockerfile:1
ARG CUDA=12.4.1
FROM nvidia/cuda:${CUDA}-cudnn-devel-ubuntu22.04 AS build
SHELL ["/bin/bash", "-c"]
ENV DEBIAN_FRONTEND=noninteractive \
    TORCH_CUDA_ARCH_LIST="8.0 8.6+PTX" \
    # for the loader
    LD_LIBRARY_PATH=/usr/local/cuda/lib64:${LD_LIBRARY_PATH}
RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \
    apt-get update && apt-get install -y --no-install-recommends \
        git \
        python3-pip \
    && rm -rf /var/lib/apt/lists/*
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install torch==2.6.0 --index-url https://download.pytorch.org/whl/cu124
RUN <<EOF
set -e
pip install "flash-attn>=2.7" --no-build-isolation
EOF
RUN bash -ex <<'EOF'
cmake -S . -B build -DCMAKE_CUDA_ARCHITECTURES="80;90"
EOF

FROM nvidia/cuda:${CUDA}-runtime-ubuntu22.04
COPY --from=build /usr/local/lib/python3.10 /usr/local/lib/python3.10
CMD ["python3", "-m", "app"]
