FROM scratch
RUN --mount='"a' c
RUN after
