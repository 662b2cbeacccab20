"""The names of apps on HarmonyOS, and the tree as ``uitest dumpLayout`` writes it (testfwk_arkxtest)."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.devices.base import Node

# The apps' names here, by the packages that the virtual phone has.
BUNDLES = {
    "com.android.launcher3": "com.ohos.sceneboard",
    "com.tencent.mobileqq": "com.tencent.mqq",
    "com.tencent.mm": "com.tencent.wechat",
    "com.eg.android.AlipayGphone": "com.alipay.mobile.client",
    "com.android.settings": "com.huawei.hmos.settings",
}
DESKTOP = "com.ohos.sceneboard"
ABILITY = "EntryAbility"
_TYPES = {
    "EditText": "TextArea", "ImageView": "Image", "FrameLayout": "Stack", "RelativeLayout": "Row", "View": "Column",
    "TextView": "Text", "RecyclerView": "List", "ListView": "List", "AbsListView": "List", "ImageButton": "Image",
    "Button": "Button", "LinearLayout": "Column", "CheckBox": "Checkbox", "Switch": "Toggle", "ProgressBar": "Progress",
}  # fmt: skip


def bundle_of(package: str) -> str:
    return BUNDLES.get(package, package)


def package_of(bundle: str) -> str:
    return next((package for package, name in BUNDLES.items() if name == bundle), bundle)


def layout(nodes: Sequence[Node]) -> dict[str, object]:
    """Return the tree as ``dumpLayout`` writes it: a root, a window that names its bundle, its nodes."""
    first, *rest = nodes
    bundle = bundle_of(first.package)
    window = _attributes(first) | {"type": "root", "bundleName": bundle, "abilityName": ABILITY, "pagePath": ""}
    inside = [{"attributes": _attributes(node), "children": []} for node in rest]
    return {
        "attributes": dict.fromkeys(_attributes(first), "") | {"bounds": _bounds(first)},
        "children": [{"attributes": window, "children": inside}],
    }


def _attributes(node: Node) -> dict[str, str]:
    """Return a node's attributes, without Android's resource ids: the app's ids on this system are unknown."""
    kind = node.class_name.rpartition(".")[2]
    return {
        "accessibilityId": "", "bounds": _bounds(node), "checkable": "false", "checked": "false",
        "clickable": _word(node.clickable), "description": node.description, "enabled": _word(node.enabled),
        "focused": _word(node.focused), "hint": "", "hostWindowId": "13", "id": "", "key": "",
        "longClickable": "false", "origBounds": _bounds(node), "scrollable": "false", "selected": "false",
        "text": node.text, "type": _TYPES.get(kind, kind), "visible": "true", "zIndex": "0",
    }  # fmt: skip


def _bounds(node: Node) -> str:
    return f"[{node.box.left},{node.box.top}][{node.box.right},{node.box.bottom}]"


def _word(value: bool) -> str:
    return "true" if value else "false"
