# ruff: noqa: E501  # lines as long as phones print them
"""What phones of different Androids and makers print, and what must be read from it."""

from __future__ import annotations

import pytest

from agent_core.devices.adb import parse
from agent_core.devices.base import Battery, Notification, ScreenState, Window, WindowKind

QQ = "com.tencent.mobileqq"
SPLASH = "com.tencent.mobileqq.activity.SplashActivity"

ANDROID_8 = """\
    KeyguardServiceDelegate
      showing=false
      showingAndNotOccluded=true
      inputRestricted=false
      occluded=false
      secure=false
  mCurrentFocus=Window{2a5d1c7 u0 com.tencent.mobileqq/com.tencent.mobileqq.activity.SplashActivity}
  mFocusedApp=AppWindowToken{8d1c token=Token{77a ActivityRecord{1b9 u0 com.tencent.mobileqq/.activity.SplashActivity t41}}}
"""
ANDROID_13 = """\
    KeyguardServiceDelegate
      showing=false
      occluded=false
  mCurrentFocus=Window{f31c0de u0 com.tencent.mobileqq/com.tencent.mobileqq.activity.SplashActivity}
  mFocusedApp=ActivityRecord{90b1e2 u0 com.tencent.mobileqq/.activity.SplashActivity} t12}
"""
TWO_DISPLAYS = """\
  mCurrentFocus=null
  mFocusedApp=null
  mCurrentFocus=Window{f31c0de u0 com.tencent.mobileqq/com.tencent.mobileqq.activity.SplashActivity}
  mFocusedApp=ActivityRecord{90b1e2 u0 com.tencent.mobileqq/.activity.SplashActivity t12}
"""


@pytest.mark.parametrize(
    ("text", "window"),
    [
        pytest.param(ANDROID_8, Window(QQ, SPLASH), id="android-8"),
        pytest.param(ANDROID_13, Window(QQ, SPLASH), id="android-13"),
        pytest.param(TWO_DISPLAYS, Window(QQ, SPLASH), id="first-display-has-none"),
        pytest.param(
            "  mCurrentFocus=Window{1 u0 com.tencent.mobileqqi/com.tencent.mobileqqi.Main}\n",
            Window("com.tencent.mobileqqi", "com.tencent.mobileqqi.Main"),
            id="a-longer-name-is-another-app",
        ),
        pytest.param(
            "  mCurrentFocus=Window{1 u10 com.tencent.mm/com.tencent.mm.ui.LauncherUI EXITING}\n",
            Window("com.tencent.mm", "com.tencent.mm.ui.LauncherUI"),
            id="second-user-leaving",
        ),
        pytest.param(
            "  mCurrentFocus=Window{a u0 com.a.b/com.a.b.Main$Inner}\n",
            Window("com.a.b", "com.a.b.Main$Inner"),
            id="inner-class",
        ),
        pytest.param(
            "  mCurrentFocus=Window{a u0 PopupWindow:3fd1}\n  mFocusedApp=ActivityRecord{9 u0 com.a.b/.Main t1}\n",
            Window("com.a.b", ".Main"),
            id="popup-belongs-to-the-app",
        ),
        pytest.param(
            "  mCurrentFocus=Window{a u0 Application Not Responding: com.a.b}\n"
            "  mFocusedApp=ActivityRecord{9 u0 com.a.b/.Main t1}\n",
            Window("android", "Application Not Responding: com.a.b"),
            id="not-responding-is-not-the-app",
        ),
        pytest.param(
            "  mCurrentFocus=null\n  mFocusedApp=ActivityRecord{9 u0 com.a.b/.Main t1}\n",
            Window(None, kind=WindowKind.NONE),
            id="null-focus",
        ),
        pytest.param(
            "  mFocusedApp=ActivityRecord{9 u0 com.a.b/.Main t1}\n", Window("com.a.b", ".Main"), id="only-focused-app"
        ),
        pytest.param(
            "    topResumedActivity=ActivityRecord{9 u0 com.a.b/.Main t1}\n",
            Window("com.a.b", ".Main"),
            id="only-top-resumed",
        ),
        pytest.param(
            "    mResumedActivity: ActivityRecord{9 u0 com.a.b/.Main t1}\n",
            Window("com.a.b", ".Main"),
            id="only-resumed-android-9",
        ),
        pytest.param(
            "      showing=false\n  mCurrentFocus=Window{2 u0 NotificationShade}\n"
            "  mFocusedApp=ActivityRecord{9 u0 com.a.b/.Main t1}\n",
            Window(None, kind=WindowKind.SHADE),
            id="shade",
        ),
        pytest.param(
            "      showing=false\n  mCurrentFocus=Window{2 u0 StatusBar}\n",
            Window(None, kind=WindowKind.SHADE),
            id="shade-android-10",
        ),
        pytest.param(
            "      showing=true\n      occluded=false\n  mCurrentFocus=Window{2 u0 NotificationShade}\n",
            Window(None, kind=WindowKind.LOCK),
            id="lock",
        ),
        pytest.param(
            "      showing=true\n      occluded=false\n  mCurrentFocus=null\n",
            Window(None, kind=WindowKind.LOCK),
            id="lock-without-focus",
        ),
        pytest.param(
            "      showing=true\n      occluded=true\n  mCurrentFocus=Window{2 u0 com.android.dialer/.InCallActivity}\n",
            Window("com.android.dialer", ".InCallActivity"),
            id="a-call-over-the-lock-screen",
        ),
        pytest.param("", Window(None, kind=WindowKind.NONE), id="nothing"),
    ],
)
def test_window(text: str, window: Window) -> None:
    assert parse.parse_window(text) == window


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("  mWakefulness=Awake\n      showing=false\n", ScreenState(awake=True, locked=False)),
        ("  mWakefulness=Asleep\n      showing=true\n", ScreenState(awake=False, locked=True)),
        ("  mWakefulness=Dozing\n", ScreenState(awake=False, locked=False)),
        ("  mWakefulness=Dreaming\n", ScreenState(awake=False, locked=False)),
        ("Display Power: state=OFF\n", ScreenState(awake=False, locked=False)),
        ("  mDreamingLockscreen=true\n", ScreenState(awake=True, locked=True)),
        # The older flag stays true on some phones after unlocking; the keyguard's own word counts.
        ("      showing=false\n  mDreamingLockscreen=true\n", ScreenState(awake=True, locked=False)),
        ("    mShowingLockscreen=true mDreamingLockscreen=false\n", ScreenState(awake=True, locked=True)),
        ("", ScreenState(awake=True, locked=False)),
    ],
)
def test_screen(text: str, state: ScreenState) -> None:
    assert parse.parse_look(text).screen == state


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("Physical size: 1080x2400\n", (1080, 2400)),
        ("Physical size: 1440x3200\nOverride size: 1080x2400\n", (1080, 2400)),
        ("Physical size: 1080x2400\n    init=1080x2400 440dpi cur=2400x1080 app=2280x1080\n", (2400, 1080)),
        ("error\n", None),
    ],
)
def test_size(text: str, size: tuple[int, int] | None) -> None:
    assert parse.parse_size(text) == size


FOLDABLE = """\
  DisplayDeviceInfo{"Built-in Screen": uniqueId="local:4619827259835644672", 1080 x 2520, modeId 1, state OFF, committedState OFF}
  DisplayDeviceInfo{"Built-in Screen": uniqueId="local:4619827551948147201", 1840 x 2208, modeId 3, state ON, committedState ON}
  DisplayDeviceInfo{"Overlay": uniqueId="overlay:1", 720 x 480, state ON}
"""


def test_the_display_that_is_on() -> None:
    assert parse.parse_active_display(FOLDABLE) == "4619827551948147201"
    assert parse.parse_display_count(FOLDABLE) == 2
    assert parse.parse_active_display("Can't find service: display") is None


def test_packages() -> None:
    text = "package:com.b\npackage:com.tencent.mobileqq\nWARNING: linker: something\npackage:com.b\npackage:\n"
    assert parse.parse_packages(text) == ("com.b", QQ)


@pytest.mark.parametrize(
    ("text", "component"),
    [
        (
            "priority=0 preferredOrder=0 match=0x108000 isDefault=false\ncom.tencent.mobileqq/.activity.SplashActivity\n",
            "com.tencent.mobileqq/.activity.SplashActivity",
        ),
        ("No activity found\n", None),
        # Several are possible: Android names its chooser, which is not the app.
        ("priority=0\nandroid/com.android.internal.app.ResolverActivity\n", None),
        ("com.tencent.mobileqqi/.Main\n", None),
        ("", None),
    ],
)
def test_component(text: str, component: str | None) -> None:
    assert parse.parse_component(text, QQ) == component


@pytest.mark.parametrize(
    ("text", "version"),
    [("    versionName=9.0.8\n    versionName=8.0.0\n", "9.0.8"), ("    versionName=null\n", None), ("", None)],
)
def test_version(text: str, version: str | None) -> None:
    assert parse.parse_version(text) == version


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  mCurMethodId=a/.B\n  mInputShown=true\n", ("a/.B", True)),
        ("  mCurMethodId=a/.B\n  mCurId=a/.B mHaveConnection=false mBoundToMethod=false\n", ("a/.B", False)),
        ("  mCurMethodId=a/.B\n  mCurId=c/.D mHaveConnection=true\n", ("c/.D", True)),
        ("  mCurMethodId=a/.B\n  mCurId=null mHaveConnection=true\n", ("a/.B", True)),
        ("  mCurId=a/.B, mHasMainConnection=true\n", ("a/.B", True)),
        ("Can't find service: input_method\n", (None, True)),
    ],
)
def test_input_method(text: str, expected: tuple[str | None, bool]) -> None:
    assert parse.parse_input_method(text) == expected


NOTIFICATIONS = """\
Current Notification Manager state:
  Notification List:
    NotificationRecord(0x0a1b2c3d: pkg=com.tencent.mobileqq user=UserHandle{0} id=265 tag=null importance=4 key=0|com.tencent.mobileqq|265|null|10123: Notification(channel=msg pri=0 contentView=null))
      uid=10123 userId=0
      opPkg=com.tencent.mobileqq
      icon=Icon(typ=RESOURCE pkg=com.tencent.mobileqq id=0x7f020a10)
      key=0|com.tencent.mobileqq|265|null|10123
      seen=false
      extras={
          android.title=String (11)
          android.reduced.images=Boolean (true)
          android.text=SpannableString (打印机连不上 (型号 X1)
怎么办？)
          android.progress=Integer (0)
          android.largeIcon=null
      }
      stats=SingleNotificationStats{posttimeElapsedMs=1}
    NotificationRecord(0x0beef000: pkg=com.android.systemui user=UserHandle{-1} id=3 tag=null importance=2 key=-1|com.android.systemui|3|null|10027: Notification(channel=BAT))
      extras={
          android.title=null
          android.text=null
      }
    NotificationRecord(0x0c0ffee0: pkg=com.tencent.mm user=UserHandle{0} id=40 tag=x importance=4 key=0|com.tencent.mm|40|x|10200: Notification(channel=m))
      extras={
          android.title=String (李先生)
          android.text=String ([2条]李先生: 在吗)
          android.bigText=String (在吗
请问几点开门？)
      }
    NotificationRecord(0x0c0ffee1: pkg=com.tencent.mm user=UserHandle{0} id=40 tag=x importance=4 key=0|com.tencent.mm|40|x|10200: Notification(channel=m))
      extras={
          android.title=String (twice)
          android.text=String (twice)
      }
  mNotificationLock=held
  Snoozed notifications:
    NotificationRecord(0x0dead000: pkg=com.a.b user=UserHandle{0} id=1 tag=null importance=4 key=0|com.a.b|1|null|1: Notification(channel=m))
      extras={
          android.title=String (later)
          android.text=String (snoozed)
      }
"""


def test_notifications() -> None:
    assert parse.parse_notifications(NOTIFICATIONS) == (
        Notification(QQ, "11", "打印机连不上 (型号 X1)\n怎么办？", f"0|{QQ}|265|null|10123"),
        Notification("com.tencent.mm", "李先生", "在吗\n请问几点开门？", "0|com.tencent.mm|40|x|10200"),
    )


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("Permission Denial: can't dump NotificationManager from pid=1, uid=2000\n", True),
        ("Can't find service: notification\n", True),
        (NOTIFICATIONS + "\n*** SERVICE 'notification' DUMP TIMEOUT (10000ms) EXPIRED ***\n", True),
        (NOTIFICATIONS, False),
        (NOTIFICATIONS.replace("NotificationRecord", "Permission Denial\nNotificationRecord"), False),
    ],
)
def test_a_dump_that_is_refused_is_no_empty_shade(text: str, refused: bool) -> None:
    assert parse.dump_refused(text) is refused


def test_notifications_that_the_phone_hides_are_not_taken_for_texts() -> None:
    text = (
        "  Notification List:\n    NotificationRecord(0x1: pkg=com.a.b user=UserHandle{0} id=1 key=0|com.a.b|1|null|1: N)\n"
        "      extras={\n          android.title=String [length=2]\n          android.text=String [length=9]\n      }\n"
    )
    assert parse.parse_notifications(text) == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\nError: no such thing\n  at java.x\n", "Error: no such thing"),
        ("Starting: Intent { cmp=a/b }\nError type 3\n", "Error type 3"),
        (
            "Exception occurred while executing 'text':\njava.lang.NullPointerException: Attempt to get length\n\tat a.b\n",
            "java.lang.NullPointerException: Attempt to get length",
        ),
        ("Starting: Intent\n", "Starting: Intent"),
        ("", ""),
    ],
)
def test_first_line(text: str, line: str) -> None:
    assert parse.first_line(text) == line


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("java.lang.SecurityException: Injecting to another application requires INJECT_EVENTS permission", True),
        ("java.lang.SecurityException: Injecting input events requires the caller to have permission", True),
        ("java.lang.SecurityException: Permission denial: writing to settings", False),
        ("", False),
    ],
)
def test_denied_input(text: str, denied: bool) -> None:
    assert parse.denies_input(text) is denied


BATTERY = """\
Current Battery Service state:
  AC powered: {ac}
  USB powered: false
  Wireless powered: false
  Max charging current: 500000
  status: {status}
  health: 2
  present: true
  level: 41
  scale: 100
  technology: Li-ion
"""


@pytest.mark.parametrize(
    ("ac", "status", "charging"),
    [
        ("true", "2", True),
        ("false", "3", False),
        ("true", "4", False),  # plugged in, and kept from charging
        ("true", "5", True),
        ("false", "5", False),
        ("true", "1", None),
    ],
)
def test_battery(ac: str, status: str, charging: bool | None) -> None:
    assert parse.parse_battery(BATTERY.format(ac=ac, status=status)) == Battery(41, charging)


@pytest.mark.parametrize(
    ("tenths", "celsius"), [("285", 28.5), ("463", 46.3), ("0", None), ("-5", None), ("9999", None)]
)
def test_the_temperature_of_a_battery(tenths: str, celsius: float | None) -> None:
    text = f"  level: 41\n  temperature: {tenths}\n"
    assert parse.parse_battery(text) == Battery(41, None, celsius)


def test_a_battery_of_which_nothing_is_said() -> None:
    assert parse.parse_battery("Can't find service: battery\n") == Battery(None, None)
    assert parse.parse_battery("  level: 410\n  status: on\n") == Battery(None, None)
    assert parse.parse_battery("  level: 41\r\n  status: 2\r\n  other level: 5\n  level: 7\n") == Battery(41, True)


@pytest.mark.parametrize(
    ("line", "serial", "state", "model", "number", "connection"),
    [
        ("0A1B2C3D device usb:1-1.2 product:a model:Mate_60 device:b transport_id:4", "0A1B2C3D", "device", "Mate_60", "4", "usb"),
        ("0A1B2C3D device 1-1 product:a model:Mate_60 device:b transport_id:4", "0A1B2C3D", "device", "Mate_60", "4", "usb"),
        ("192.168.1.20:5555    unauthorized transport_id:2", "192.168.1.20:5555", "unauthorized", "", "2", "tcp"),
        ("0A1B2C3D offline", "0A1B2C3D", "offline", "", "", "usb"),
        ("0A1B2C3D\tdevice", "0A1B2C3D", "device", "", "", "usb"),
        (
            "0A1B2C3D no permissions (missing udev rules? user is in the plugdev group); see [http://x/y] usb:3-2",
            "0A1B2C3D",
            "no permissions (missing udev rules? user is in the plugdev group); see [http://x/y]",
            "",
            "",
            "usb",
        ),
    ],
)  # fmt: skip
def test_attached_phones(line: str, serial: str, state: str, model: str, number: str, connection: str) -> None:
    (entry,) = parse.parse_devices(f"{line}\n\n")
    assert (entry.serial, entry.state, entry.model, entry.number) == (serial, state, model, number)
    assert entry.connection == connection
