# Runs first on a board: joins the network. Values are kept while there is none.
import network

import config

wlan = network.WLAN(network.STA_IF)
wlan.active(True)
wlan.connect(*config.WIFI)
