# The two commands of the README are `make demo` and `make test`; both install what they miss.
CARGO := scripts/cargo
PACKAGES_BUILD := gcc libc6-dev
PACKAGES_JAVA := maven openjdk-17-jdk-headless
PACKAGES_PYTHON := python3-venv
PACKAGES_TEST := $(PACKAGES_JAVA) $(PACKAGES_PYTHON) redis-server redis-tools nbdkit fio qemu-utils \
	libnbd-bin python3-libnbd openssl python3-redis node-redis
PACKAGES_OUTSIDE := fio nbdkit libnbd-bin python3-libnbd qemu-utils qemu-system-x86 \
	busybox-static e2fsprogs fuse3 pkgconf dpkg-dev binutils skopeo debootstrap systemd-container \
	chromium chromium-driver
PACKAGES_PEERS := golang-go python3-venv
PACKAGES_DEMO := fio
PACKAGES_BENCH := fio redis-server redis-tools memcached librocksdb-dev liblmdb-dev

PREFIX := /usr/local
DESTDIR :=

.PHONY: demo test bench docs soak install clean

demo:
	@scripts/packages $(PACKAGES_BUILD) $(PACKAGES_DEMO)
	@$(CARGO) run --quiet --release --package entresol -- demo

test:
	@scripts/packages $(PACKAGES_BUILD) $(PACKAGES_TEST)
	@$(CARGO) x ci

bench:
	@scripts/packages $(PACKAGES_BUILD) $(PACKAGES_BENCH)
	@$(CARGO) x bench

docs:
	@scripts/packages $(PACKAGES_BUILD) $(PACKAGES_JAVA)
	@$(CARGO) x book

soak:
	@scripts/packages $(PACKAGES_BUILD) $(PACKAGES_TEST) $(PACKAGES_OUTSIDE) $(PACKAGES_PEERS)
	@$(CARGO) x soak

install:
	@scripts/packages $(PACKAGES_BUILD)
	@$(CARGO) build --quiet --release --package entresol
	@install -d '$(DESTDIR)$(PREFIX)/bin'
	@install $${CARGO_TARGET_DIR:-target}/release/entresol '$(DESTDIR)$(PREFIX)/bin'
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install-library

clean:
	@$(CARGO) clean
