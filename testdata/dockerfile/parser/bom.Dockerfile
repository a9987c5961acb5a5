# escape=`
FROM scratch
RUN a `
  b
