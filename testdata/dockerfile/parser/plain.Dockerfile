# syntax=docker/dockerfile:1
# The usual: two stages, arguments, all instructions.
ARG BASE=debian:12
ARG TAG

FROM --platform=$BUILDPLATFORM golang:1.24 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/root/.cache/go-build go build -o /out/tool .

FROM ${BASE}
MAINTAINER Nobody <nobody@example.org>
LABEL org.opencontainers.image.title="A tool" version=1
ENV PATH=/opt/bin:$PATH LANG=C.UTF-8
ARG TAG=latest
ADD --chown=1000:1000 https://example.org/data.tar.gz /data/
COPY --from=build --chmod=755 /out/tool /opt/bin/
USER 1000:1000
EXPOSE 8080/tcp 9090
VOLUME /data ["/not json"]
VOLUME ["/cache", "/a b"]
STOPSIGNAL SIGTERM
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
HEALTHCHECK --interval=30s --retries=3 CMD curl -f http://localhost:8080/ || exit 1
ONBUILD RUN echo built
ENTRYPOINT ["tool"]
CMD ["--serve"]
