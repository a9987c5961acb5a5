FROM scratch
LABEL
RUN after
