export const map = {
  'map.whole': 'All devices',
  'map.devices.one': '{count} device with a position',
  'map.devices.other': '{count} devices with a position',
  'map.here': '{count} devices here',
  'map.inAlarm': '{what}, in alarm',
  'map.none': 'No device has sent a position',
  'map.noneHint': 'A device that sends its latitude and longitude appears here.',
  'map.cut': 'Only the first 5,000 devices were searched.',
} as const;
