FROM scratch
RUN --mount=type=bind,from=$a,target=/b c
RUN after
