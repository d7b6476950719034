# Runs first on a board, and joins the network. Without a network the device keeps its values.
import network

import config

wlan = network.WLAN(network.STA_IF)
wlan.active(True)
wlan.connect(*config.WIFI)
