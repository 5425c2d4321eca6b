"""The pages of a small wiki that most tests are about."""

from __future__ import annotations

_HEATING = """\
---
title: Heating
category: house
tags: [winter, pipes]
---

# Heating

The boiler in the cellar warms the radiators of every room from October to April, and the bath all year.

## Before the frost

When a cold night is announced, open the valves of the workshop by a quarter, so that water keeps moving in the pipe
along the outer wall. It burst once, in a January when nobody was at home, and the floor had to be laid again. Since
then a neighbour looks in every second day.

## Bleeding a radiator

If it gurgles and is only half warm there is air in it. Hold a cup under the screw at the top, turn the key to the
left until water comes instead of hissing, and close it again. Then look at the gauge of the boiler and fill up to one
and a half bar.
"""
HANDBOOK: dict[str, str | bytes] = {
    "home.md": "# Home\n\nThis wiki is about a house, its machines and its garden, for the people in it.\n",
    "house/heating.md": _HEATING,
    "house/alarm.md": "# Alarm\n\nThe siren is tested each March. Its code is kept in the safe, not here.\n",
    "garden.md": "# Garden\n\n## Tomatoes\n\nPlant them after the middle of May, tie them up, and never wet their leaves.\n",
    "machines/nas.md": "# NAS\n\nFour disks in two mirrors. A failed one is exchanged while the other works.\n",
}
