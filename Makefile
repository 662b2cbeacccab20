# `make setup`, `make test`, `make check` and `make demo` work on a machine that has Python 3.11+ with venv, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
UV ?= uv

# Containers set it; then each of the processes that tests start compiles every module anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup lock wheel demo unit test check types lint collect eval clean

# One version for every Python and platform, with the hashes of all its files. No address gets into the files.
LOCK := $(UV) pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
  --no-annotate --no-emit-index-url --custom-compile-command 'make lock' $(UPGRADE)

# As bot.channels.cli.terminal decides it: PHONEDESK_LANG, else the locale; without one Chinese.
LOCALE := $(firstword $(subst ., ,$(subst @, ,$(or $(PHONEDESK_LANG),$(LC_ALL),$(LC_MESSAGES),$(LANG)))))
ifneq ($(or $(filter zh% ZH% C POSIX,$(LOCALE)),$(if $(LOCALE),,none)),)
define HELP
make setup   把运行要用的都装进 $(VENV)
make lock    按 pyproject.toml 重新写 constraints*.txt，要用 uv；UPGRADE=--upgrade 换成新版本
make wheel   打成 wheel，放在 dist/
make demo    在这个终端里，用虚拟手机演示主要功能
make unit    一两分钟跑完的测试：不启动进程和服务器，不用手机和 PostgreSQL
make test    跑全部测试
make check   检查代码、类型和导入；unit、test 和 check 会补装它们要用的工具
make eval    每个场景在应用的每种外观里跑一遍，用界面元素和只看画面各一遍
endef
NEEDS_PYTHON := phonedesk 需要 Python 3.11 或更新的版本；可以用 PYTHON=/path/to/python3.11 指定
NEEDS_VENV := 缺少 Python 的 venv 模块；Debian 和 Ubuntu 上运行：apt-get install python3-venv
MAKING := 1/3 建立 $(VENV)
INSTALLING := 2/3 安装约 110 个包，要几分钟
INSTALLING_OURS := 3/3 安装 phonedesk 本身
INSTALLING_DEV := 安装测试和检查用的约 25 个包
INSTALLED := 装好了；接下来：make demo。文档里的 phonedesk 就是 $(BIN)/phonedesk；在终端里执行一次 source $(BIN)/activate，就可以直接写 phonedesk
NOT_INSTALLED := 如果是下载失败，请检查网络和下面的代理；也可以用 PIP_INDEX_URL 指定镜像。代理是 socks 的（pip 用不了）就换成它的 http 地址；代理没有开就不用代理：env -u all_proxy -u ALL_PROXY -u https_proxy -u HTTPS_PROXY -u http_proxy -u HTTP_PROXY make setup
NO_PROXY_SET := 没有设置代理
NEEDS_UV := make lock 需要 uv：pip install uv
else
define HELP
make setup   install what phonedesk runs on into $(VENV)
make lock    write constraints*.txt anew from pyproject.toml, by uv; UPGRADE=--upgrade takes newer versions
make wheel   phonedesk as a wheel, in dist/
make demo    the main job on a virtual phone, in this terminal
make unit    the tests without processes, servers, phones and PostgreSQL, in one to two minutes
make test    every test
make check   lint, types, imports; unit, test and check install their tools first
make eval    every scenario in every look of its app, with the tree and by pictures only
endef
NEEDS_PYTHON := phonedesk needs Python 3.11 or newer; set PYTHON=/path/to/python3.11
NEEDS_VENV := Python's venv module is missing; on Debian and Ubuntu: apt-get install python3-venv
MAKING := 1/3 making $(VENV)
INSTALLING := 2/3 installing about 110 packages; this takes some minutes
INSTALLING_OURS := 3/3 installing phonedesk itself
INSTALLING_DEV := installing about 25 packages for tests and checks
INSTALLED := installed; next: make demo. Where the docs say phonedesk, it is $(BIN)/phonedesk here; after source $(BIN)/activate in a terminal, phonedesk is enough
NOT_INSTALLED := If the download failed, check the network and the proxy that is set here; PIP_INDEX_URL can name a mirror. If it is a socks proxy, which pip cannot use, give its http address; if it does not run, go without: env -u all_proxy -u ALL_PROXY -u https_proxy -u HTTPS_PROXY -u http_proxy -u HTTP_PROXY make setup
NO_PROXY_SET := no proxy is set
NEEDS_UV := make lock needs uv: pip install uv
endif
export HELP

# The proxies that pip is given, without passwords.
PROXIES = set=; for name in HTTPS_PROXY https_proxy HTTP_PROXY http_proxy ALL_PROXY all_proxy PIP_PROXY; do \
  eval "value=\$$$$name"; [ -z "$$value" ] || { set=1; echo "  $$name=$$value" | sed 's|=\([a-z0-9]*://\)\{0,1\}.*@|=\1***@|'; }; done; \
  [ -n "$$set" ] || echo "  $(NO_PROXY_SET)"

help:
	@echo "$$HELP"

setup: $(STAMP)

# What pip installs is pinned, with hashes. If it fails, say what to look at.
PIP_INSTALL = $(BIN)/python -m pip install --disable-pip-version-check --require-hashes
OR_SAY_WHY = || { { echo "$(NOT_INSTALLED)"; $(PROXIES); } >&2; exit 1; }

$(STAMP): pyproject.toml constraints.txt constraints-build.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(NEEDS_PYTHON)" >&2; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(NEEDS_VENV)" >&2; exit 2; }
	@echo "$(MAKING)"
	@$(PYTHON) -m venv $(VENV)
	@echo "$(INSTALLING)"
	@$(PIP_INSTALL) -r constraints.txt -r constraints-build.txt $(OR_SAY_WHY)
	@echo "$(INSTALLING_OURS)"
	@$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@echo "$(INSTALLED)"
	@touch $@

$(DEV_STAMP): $(STAMP) constraints-dev.txt
	@echo "$(INSTALLING_DEV)"
	@$(PIP_INSTALL) -r constraints-dev.txt $(OR_SAY_WHY)
	@touch $@

lock:
	@command -v $(UV) >/dev/null || { echo "$(NEEDS_UV)" >&2; exit 2; }
	$(LOCK) --all-extras pyproject.toml -o constraints.txt
	$(LOCK) --group pyproject.toml:dev -c constraints.txt -o constraints-dev.txt
	$(LOCK) --group pyproject.toml:build -c constraints-dev.txt -o constraints-build.txt

wheel: $(STAMP)
	rm -rf build
	$(BIN)/python -m pip wheel --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

unit: $(DEV_STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal -m unit --ignore tests/acceptance

test: $(DEV_STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal

# mypy works on one core for as long as all the others together, so they run side by side. What `collect` compiles, the tests need.
check: $(DEV_STAMP)
	@$(MAKE) --no-print-directory --jobs 2 types lint collect

types: $(DEV_STAMP)
	$(BIN)/mypy

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/deptry . --exclude '\.venv|build' --ignore DEP002,DEP004  # the tests, too, which may use tools

collect: lint
	@echo "$(BIN)/python -m pytest --collect-only"
	@found=$$($(BIN)/python -m pytest --collect-only -qq 2>&1) || { echo "$$found" | tail -n 60; exit 1; }

eval: $(STAMP)
	$(BIN)/phonedesk eval --look all --jobs 2

demo: $(STAMP)
	$(BIN)/phonedesk demo

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache build dist demo-output
