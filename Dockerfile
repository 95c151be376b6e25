# cumatrix for CI, GPU runners and Dask workers: `docker build -t cumatrix .`
# With toolkits baked in, it needs no network: `docker build -t cumatrix:cuda --build-arg TOOLKITS="12.9 13.0" .`
# docs/install.md has both, and how the digest of the base is checked.
FROM docker.io/library/python:3.12-slim-bookworm@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254 AS base

FROM base AS build
COPY . /source
RUN python3 -m venv /build \
 && /build/bin/pip install -q --no-cache-dir --require-hashes --only-binary :all: -r /source/.ci/requirements/uv.txt \
 && /build/bin/uv build -q --wheel --build-constraints /source/.ci/requirements/build.txt --require-hashes --out-dir /wheel /source

FROM base
# A host compiler for nvcc, and git for header libraries.
RUN apt-get update -q \
 && apt-get install -qy --no-install-recommends ca-certificates g++ git \
 && rm -rf /var/lib/apt/lists/*
COPY .ci/requirements/image.txt /tmp/image.txt
COPY --from=build /wheel /tmp/wheel
RUN python3 -m venv /opt/cumatrix \
 && /opt/cumatrix/bin/pip install -q --no-cache-dir --require-hashes --only-binary :all: -r /tmp/image.txt \
 && /opt/cumatrix/bin/pip install -q --no-cache-dir --no-deps /tmp/wheel/*.whl \
 && rm -r /tmp/image.txt /tmp/wheel
ENV PATH=/opt/cumatrix/bin:$PATH \
    CUMATRIX_HOME=/var/lib/cumatrix \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
# Releases of CUDA, "12.9 13.0"; then nothing is downloaded at run time.
ARG TOOLKITS=""
RUN mkdir -p /var/lib/cumatrix \
 && if [ -n "$TOOLKITS" ]; then cumatrix toolkits install $TOOLKITS && rm -rf /root/.cache; fi
ENV CUMATRIX_OFFLINE=${TOOLKITS:+1}
WORKDIR /work
CMD ["cumatrix", "--help"]
