# acceptance: two commands do everything on a fresh Debian 12 machine with Go 1.26.
#
#   make acceptance   install what is missing, build, run the main job on a real browser, verify the bundle, say where the report is
#   make test         the same set-up, then every test, with browsers
#
# Both work as root and as an ordinary user with sudo, from any folder with make -C.

SHELL   := /bin/bash
ENGINES ?= chromium
OUT     ?= out/$(shell date -u +%Y%m%dT%H%M%SZ)

.PHONY: help deps build acceptance test test-unit test-browser bench soak lint clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

deps: ## install the Debian packages and Go modules that are missing, and say which
	@.ci/deps

build: deps ## build bin/acceptance, and bin/acceptance-verify for auditors (static, no cgo)
	@.ci/build

acceptance: build ## run the main job and verify its bundle
	@.ci/acceptance "$(ENGINES)" "$(OUT)"

test: deps ## every test, with browsers; the last line is go test's own summary
	@.ci/test

test-unit: ## tests that need neither browser nor display
	@go test ./...

test-browser: build ## tests against real browsers and a real X server
	@go test -tags browser -p 1 -timeout 25m ./...

bench: build ## ratios against a peer in the same run
	@.ci/bench

soak: build ## the long loops: ten runs, every mutant against every row, random kills
	@.ci/soak

lint: deps ## gofmt, tidy, vet, staticcheck, actionlint, import arrows
	@.ci/lint

clean: ## remove what was built and what runs left
	@rm -rf bin out
