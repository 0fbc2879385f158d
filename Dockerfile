# One image per service: docker build --target gateway . (or fetcher, journal, data-provider, secrets)

FROM node:24-bookworm-slim AS base
WORKDIR /keycast
ENV NODE_ENV=production
# docker compose exec gateway keycast key …
RUN ln -s /keycast/cli/keycast.js /usr/local/bin/keycast

# What npm needs to know and nothing else, so that a change of code installs nothing anew.
FROM base AS manifests
COPY scripts/support/prune-modules /usr/local/bin/
COPY package.json package-lock.json .npmrc ./
COPY packages/backbone/package.json packages/backbone/
COPY packages/client/package.json packages/client/
COPY packages/protocol/package.json packages/protocol/
COPY packages/service/package.json packages/service/
COPY services/data-provider/package.json services/data-provider/
COPY services/fetcher/package.json services/fetcher/
COPY services/gateway/package.json services/gateway/
COPY services/journal/package.json services/journal/
COPY cli/package.json cli/
COPY loadtest/package.json loadtest/

# No install scripts: zeromq and lmdb ship their binaries.
FROM manifests AS gateway-modules
RUN --mount=type=cache,target=/root/.npm npm ci --omit=dev --ignore-scripts -w services/gateway -w cli && prune-modules

FROM manifests AS fetcher-modules
RUN --mount=type=cache,target=/root/.npm npm ci --omit=dev --ignore-scripts -w services/fetcher && prune-modules

FROM manifests AS journal-modules
RUN --mount=type=cache,target=/root/.npm npm ci --omit=dev --ignore-scripts -w services/journal && prune-modules

FROM manifests AS data-provider-modules
RUN --mount=type=cache,target=/root/.npm npm ci --omit=dev --ignore-scripts -w services/data-provider && prune-modules

FROM base AS gateway
COPY --from=gateway-modules /keycast ./
COPY packages packages
COPY services/gateway services/gateway
COPY examples examples
COPY cli cli
COPY keycast.yaml ./
# What Node compiled for this user is kept in the image: a container starts sooner, and its files may be read-only.
RUN install -d -o node node_modules/.cache
USER node
RUN node services/gateway/main.js --help >/dev/null
EXPOSE 8080 8081
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=3 CMD ["node", "packages/service/check-health.ts", "http://127.0.0.1:8081/health/ready"]
# A larger young generation buys a gateway nothing and costs it 4 KB a session.
CMD ["node", "--max-semi-space-size=4", "services/gateway/main.js"]

FROM base AS fetcher
COPY --from=fetcher-modules /keycast ./
COPY packages packages
COPY services/fetcher services/fetcher
COPY keycast.yaml ./
RUN install -d -o node node_modules/.cache
USER node
RUN node services/fetcher/main.js --help >/dev/null
EXPOSE 7001 7002 8082
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=3 CMD ["node", "packages/service/check-health.ts", "http://127.0.0.1:8082/health/ready"]
CMD ["node", "services/fetcher/main.js"]

FROM base AS journal
COPY --from=journal-modules /keycast ./
COPY packages packages
COPY services/journal services/journal
COPY cli cli
COPY keycast.yaml ./
# A volume mounted over /data takes its owner, and these two folders.
RUN install -d -o node -g node -m 0700 /data /data/log /data/backups
ENV JOURNAL_DATA=/data/log
RUN install -d -o node node_modules/.cache
USER node
RUN node services/journal/main.js --help >/dev/null
EXPOSE 7003 7004 8083
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=3 CMD ["node", "packages/service/check-health.ts", "http://127.0.0.1:8083/health/ready"]
CMD ["node", "services/journal/main.js"]

FROM base AS data-provider
COPY --from=data-provider-modules /keycast ./
COPY packages packages
COPY services/data-provider services/data-provider
RUN install -d -o node node_modules/.cache
USER node
RUN node services/data-provider/main.js --help >/dev/null
EXPOSE 3000
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=3 CMD ["node", "packages/service/check-health.ts", "http://127.0.0.1:3000/health/ready"]
CMD ["node", "services/data-provider/main.js"]

# Runs once: makes the secrets the others read. A volume mounted over these folders takes their owner.
FROM base AS secrets
COPY --from=fetcher-modules /keycast ./
COPY packages packages
COPY cli cli
RUN install -d -o node -g node -m 0755 /secrets/gateway /secrets/fetcher /secrets/grafana
USER node
CMD ["keycast", "secrets", "/secrets"]
