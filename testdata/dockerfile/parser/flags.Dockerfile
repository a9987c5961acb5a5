FROM --platform=linux/amd64 scratch AS a
COPY --from=a --chown=b:c --chmod=755 --link --parents --exclude=d --exclude=e f g
COPY --link=false --from="a" --chown='b' --chmod=7\55 f g
ADD --keep-git-dir=true --checksum=sha256:0 --unpack --link=TRUE --exclude=*.x h i
RUN --mount=type=cache,target=/a --mount=type=bind,from=a,source=/b,target=/c \
    --network=none --security=insecure --device=nvidia.com/gpu=all,required=true j
RUN --network=host
HEALTHCHECK --interval=1m30s --timeout=.5s --start-period=0 --start-interval=1h --retries=3 CMD p
HEALTHCHECK --nonsense NONE
ONBUILD RUN --nonsense r
