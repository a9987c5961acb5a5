# escape=`
FROM mcr.microsoft.com/windows/servercore:ltsc2022
SHELL ["powershell", "-Command"]
RUN Write-Host 'one' ; `
    Write-Host C:\dir\
COPY file.txt C:\
ENV A=C:\x B="a`"b" C=d` e
WORKDIR C:\app
