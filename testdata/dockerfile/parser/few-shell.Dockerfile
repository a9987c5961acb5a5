FROM scratch
SHELL []
RUN after
