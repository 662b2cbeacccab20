"""The usage texts of HarmonyOS's tools, in few words of our own."""

BAD_PLACE = "Please confirm that the coordinate values are correct. \n"
UI_INPUT = (
    "USAGE : \nhelp\nclick/doubleClick/longClick <x> <y>\nswipe/drag/fling <x> <y> <x> <y> [velocity]\n"
    "keyEvent <keyID> [keyID] [keyID]\ninputText <x> <y> <text>\ntext <text>\n"
)
UITEST = "usage: uitest <command> [options]\nhelp\nscreenCap\ndumpLayout\nuiInput\n--version\n"
AA = "usage: aa <command> <options>\nThese are common aa commands list:\n  help\n  start\n  dump\n  force-stop\n"
BM = "usage: bm <command> <options>\nThese are common bm commands list:\n  help\n  dump\n"
PARAM = "usage: param get [name]\n"
POWER_SHELL = "usage: power-shell <command> <options>\n  wakeup\n  suspend\n  timeout -o <ms> | -r\n"
HIDUMPER = 'usage: hidumper -s [SA] -a ["args"]\n'
