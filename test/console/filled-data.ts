/** A device that measures the air of a cold room. */
export const box = (name: string, serial: string) => ({
  device: { name, serial, swVersion: '1.4.2' },
  module: [
    {
      moduleId: 'climate',
      senses: [
        { sId: '0x10', min: -40, max: 85, name: 'Temperature', unit: '°C', decimals: 1 },
        { sId: '0x11', min: 0, max: 100, name: 'Humidity', unit: '%', decimals: 0 },
      ],
    },
  ],
});

/** Too warm is an alarm; so would be too humid. */
export const coldRoom = {
  puId: 1,
  name: 'Cold room',
  initStId: 1,
  states: [
    {
      stId: 1,
      name: 'watched',
      events: [
        {
          evId: 1,
          name: 'Too warm',
          eventLog: true,
          actions: { cloud: { sendEvent: true }, alarm: true },
          causes: [{ sId: '0x10', orderId: 1, threshold: { count: 2 }, thresholds: { isGt: 8 } }],
        },
        {
          evId: 2,
          name: 'Too humid',
          eventLog: true,
          actions: { cloud: { sendEvent: true }, alarm: true },
          causes: [{ sId: '0x11', orderId: 1, threshold: { count: 3 }, thresholds: { isGt: 90 } }],
        },
      ],
    },
  ],
};
