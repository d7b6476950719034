export const profiles = {
  'profiles.none': 'No device has a profile yet',
  'profiles.pending': '{count} still to answer',
  'profiles.refused': '{count} refused it',
  'profiles.at': 'Installed {time}',
  'profiles.between': 'Installed from {first} to {last}',
  'profiles.content': 'Content',
} as const;
