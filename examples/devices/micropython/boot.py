# Runs first on a board and joins the network. Values are kept while there is no network.
import network

import config

wlan = network.WLAN(network.STA_IF)
wlan.active(True)
wlan.connect(*config.WIFI)
