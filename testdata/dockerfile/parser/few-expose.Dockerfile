FROM scratch
EXPOSE
RUN after
