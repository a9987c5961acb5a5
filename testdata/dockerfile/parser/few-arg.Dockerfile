FROM scratch
ARG
RUN after
