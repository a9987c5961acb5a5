FROM scratch
ONBUILD FROM a
RUN after
