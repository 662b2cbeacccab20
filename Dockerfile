# phonedesk with all its extras: docs/how-to/install.md says how to run it.
FROM python:3.13-slim AS wheel
WORKDIR /src
COPY constraints-build.txt ./
RUN pip install --no-cache-dir --require-hashes -r constraints-build.txt
COPY . ./
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /dist .

FROM python:3.13-slim
# adb finds the phones; tini passes SIGTERM on and reaps adb.
RUN apt-get update \
    && apt-get install -y --no-install-recommends adb tini \
    && rm -rf /var/lib/apt/lists/*
COPY constraints.txt /tmp/
RUN pip install --no-cache-dir --require-hashes -r /tmp/constraints.txt
COPY --from=wheel /dist /tmp/dist
RUN pip install --no-cache-dir --no-deps /tmp/dist/*.whl && rm -r /tmp/dist /tmp/constraints.txt

# The databases, .env and the key that phones know this computer by are all in /data.
RUN useradd --uid 10001 --home-dir /data --create-home phonedesk
ENV PHONEDESK_DATA_DIR=/data PYTHONUNBUFFERED=1
USER phonedesk
WORKDIR /data
VOLUME /data
HEALTHCHECK --start-period=30s --interval=30s --timeout=10s CMD ["python", "-c", "\
from http.client import HTTPConnection; \
server = HTTPConnection('127.0.0.1', 8737, timeout=5); \
server.request('GET', '/healthz'); \
raise SystemExit(server.getresponse().status != 200)"]
ENTRYPOINT ["tini", "--", "phonedesk"]
CMD ["serve"]
