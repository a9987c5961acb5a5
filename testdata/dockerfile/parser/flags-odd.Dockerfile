FROM scratch
RUN --mount=type=secret,id=k \
    --mount="type=bind,source=l m" n
RUN -- --o
ARG --nonsense q
STOPSIGNAL --nonsense 9
