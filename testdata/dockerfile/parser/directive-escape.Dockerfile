# escape=^
FROM scratch
