# `make` alone lists the targets.
GO       ?= go
GOLANGCI  = bin/golangci-lint
GOLANGCI_VERSION = v2.15.0
FUZZTIME ?= 30s
FUZZ     ?= .

# The race detector is written in C: without a C compiler the tests run without
# it, and say so. The product itself never uses cgo.
RACE := $(if $(shell command -v $(or $(CC),gcc) 2>/dev/null),-race)

# SQLite is C that was made Go: what locks it is not seen from there, and watching
# each of its reads and writes would take most of the time. `make lint` vets.
FLAGS = -vet=off -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc/...=-race=false
TEST  = CGO_ENABLED=$(if $(RACE),1,0) $(GO) test $(RACE) $(FLAGS)

# What is in deploy/ is tested by a module of its own. Its files lie outside of
# it, so that Go would take an old result for a new one. The tools of a release are
# a module too, because of their libraries.
DEPLOY = (cd deploy/test && $(GO) test -count 1 .) && (cd tools/release && $(GO) test ./...)

.DEFAULT_GOAL := help
.PHONY: help build release run test race lint fuzz bench microbench e2e verify-long cover clickhouse mem0 conformance clients generate verify clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The program shows no pages of traced calls; without them gRPC links no templates.
TAGS = grpcnotrace

build: ## build bin/palimpsest, static
	@test -e bin/palimpsest || echo 'compiling; the first build downloads about 700 MB of Go modules and takes some minutes'
	CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -ldflags='-s -w' -o bin/palimpsest ./cmd/palimpsest

# Each platform as GOOS-GOARCH.
PLATFORMS = linux-amd64 linux-arm64 darwin-amd64 darwin-arm64

# The archive holds no date, owner or mode of this machine; needs GNU tar.
PACK = tar --sort=name --owner=0 --group=0 --numeric-owner --mode=a+rX,u+w,go-w --mtime=@0 -cf -

release: build ## build dist/: static binaries, manual, SBOM, container image, checksums
	rm -rf dist && mkdir dist
	for platform in $(PLATFORMS); do \
	  CGO_ENABLED=0 GOOS=$${platform%-*} GOARCH=$${platform#*-} $(GO) build -trimpath -tags $(TAGS) -ldflags='-s -w -buildid=' \
	    -o dist/palimpsest-$$platform ./cmd/palimpsest || exit 1; \
	done
	cd tools/release && $(GO) run ./sbom ../../dist/palimpsest-linux-amd64 >../../dist/palimpsest.cdx.json
	bin/palimpsest man dist/man1
	$(PACK) -C dist man1 | gzip -n >dist/palimpsest-man.tar.gz
	cd tools/release && $(GO) run ./image ../../dist/image palimpsest:$$(../../bin/palimpsest version | tr + -) ../../dist/palimpsest-linux-*
	$(PACK) -C dist/image . >dist/palimpsest-image.tar
	rm -r dist/man1 dist/image
	cd dist && sha256sum * >SHA256SUMS

run: build ## start everything in one process
	bin/palimpsest up

test: ## run every test, with the race detector
ifeq ($(RACE),)
	@echo 'no C compiler here: the tests run without the race detector'
endif
	$(TEST) -timeout 15m ./...
	$(DEPLOY)

race: ## run every test with the race detector, or fail without one
	CGO_ENABLED=1 $(GO) test -race $(FLAGS) -timeout 15m ./...
	$(DEPLOY)

lint: $(GOLANGCI) ## vet and lint; the vet of go is one of the linters
	$(GO) vet -tags failpoints ./internal/failpoint
	$(GOLANGCI) run
	cd deploy/test && $(GO) vet .
	cd tools/release && $(GO) vet ./...

$(GOLANGCI):
	GOBIN=$(CURDIR)/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

fuzz: ## fuzz every parser below FUZZ for FUZZTIME each
	GO=$(GO) FUZZ="$(FUZZ)" FUZZTIME=$(FUZZTIME) .ci/fuzz

bench: build ## measure the product against the bare engines
	bin/palimpsest bench $(BENCH)

microbench: ## run the Go benchmarks of all packages
	$(GO) test -run '^$$' -bench . -benchmem ./...

e2e: ## run the scenarios in every shape, and the faults
	$(TEST) -timeout 20m -count 1 ./internal/e2e/...

verify-long: build clickhouse ## run the soaks, the full scenarios, 10,000 filters, 25 kills in a row and ten seeds of chaos, which takes hours
	E2E_FULL=1 $(TEST) -timeout 4h -count 1 ./internal/e2e/... ./internal/app/...
	TEST_FILTERS=10000 $(TEST) -timeout 4h -count 1 -run '^TestStore$$/^Matching$$' ./internal/store/...
	bin/palimpsest bench --only storm
	for seed in 1 2 3 4 5 6 7 8 9 10; do bin/palimpsest chaos --seed $$seed || exit 1; done

cover: ## measure coverage
	$(TEST) -coverprofile cover.out -coverpkg ./... ./... && $(GO) tool cover -func cover.out | tail -1

clickhouse: ## fetch the ClickHouse that its tests run against
	.ci/clickhouse

mem0: ## install the clients of mem0 that tests run
	.ci/mem0

conformance: ## install the conformance suite of MCP that tests run
	.ci/conformance

clients: ## generate the clients in TypeScript and Python, and install frameworks for their adapters
	.ci/clients

generate: ## make generated files anew
	$(GO) generate ./...

verify: generate ## fail if a generated file or go.mod is stale
	$(GO) mod verify
	git diff --exit-code

clean: ## remove what was built
	rm -rf bin cover.out
