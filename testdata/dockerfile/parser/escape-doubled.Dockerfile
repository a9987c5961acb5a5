# escape=`
FROM scratch
RUN dir ``
WORKDIR C:\app
