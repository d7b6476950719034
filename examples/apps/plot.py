"""Reads measurements into a pandas frame, prints what is in it and saves a plot.

    apt install python3-pandas python3-matplotlib
    URL=http://127.0.0.1:8080 KEY=sens_… python3 examples/apps/plot.py label=cellar 7 cellar.png

The key needs the scope data:read. Instead of a label: devices=UUID,UUID.
"""

import io
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import matplotlib

matplotlib.use("Agg")  # Draw without a window.
import matplotlib.pyplot as plt
import pandas as pd

base = os.environ.get("URL", "http://127.0.0.1:8080")
which, days, picture = sys.argv[1], float(sys.argv[2]), sys.argv[3]
name, _, value = which.partition("=")

start = int((time.time() - days * 86_400) * 1000)
query = urllib.parse.urlencode({name: value, "start": start})
request = urllib.request.Request(
    f"{base}/v2/measurements?{query}",
    headers={"Authorization": f"Bearer {os.environ['KEY']}", "Accept": "text/csv"},
)
try:
    with urllib.request.urlopen(request, timeout=60) as answer:
        # Read everything first: an answer that breaks off then raises an error instead of giving a shorter frame.
        text = answer.read()
except urllib.error.HTTPError as error:
    sys.exit(f"{error.code}: {error.read().decode()}")

frame = pd.read_csv(io.BytesIO(text), dtype={"sId": str})
frame["time"] = pd.to_datetime(frame["ts"], unit="ms", utc=True)
# A position has lat and long instead of val.
numbers = frame.dropna(subset=["val"])
print(numbers.groupby(["deviceAuthUuid", "sId"])["val"].agg(["count", "min", "mean", "max"]))

figure, axes = plt.subplots(figsize=(10, 5))
for (device, sense), series in numbers.groupby(["deviceAuthUuid", "sId"]):
    axes.plot(series["time"], series["val"], marker=".", label=f"{device[:8]} {sense}")
axes.set_xlabel("time (UTC)")
if len(numbers) > 0:
    axes.legend()
figure.autofmt_xdate()
figure.savefig(picture)
print("saved:", picture)
