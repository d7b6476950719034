export const profiles = {
  'profiles.none': 'No device has a profile yet',
  'profiles.pending': '{count} still to answer',
  'profiles.refused': '{count} refused it',
  'profiles.at': 'Installed {time}',
  'profiles.between': 'Installed from {first} to {last}',
  'profiles.content': 'Content',
  'labelLimits.title': 'Limits of labels',
  'labelLimits.hint':
    'A device with one of these labels gets this stored purpose as its profile, unless somebody gave it limits of its own. The first label in this order counts.',
  'labelLimits.of': 'Limits of the label {label}',
  'labelLimits.gone': 'A purpose that was deleted',
  'labelLimits.remove': 'Remove the limits of the label {label}',
  'labelLimits.add': 'Add label',
} as const;
