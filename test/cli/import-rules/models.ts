const event = (eventName: string, condition: string, actions: object[] = []) => ({
  eventName,
  condition,
  actions,
});
const transition = (condition: string, nextState: string, actions: object[] = []) => ({
  ...event(`to ${nextState}`, condition, actions),
  nextState,
});
const tell = { sns: { targetArn: 'arn:aws:sns:eu-central-1:000000000000:people' } };

/** Too warm for ten minutes: told; and told again when it is cold. One sense, all comparisons, a timer. */
export const coldStore = {
  detectorModelName: 'Cold store',
  key: 'id',
  detectorModelDefinition: {
    initialStateName: 'Cold',
    states: [
      {
        stateName: 'Cold',
        onInput: {
          events: [
            event(
              'frost',
              'currentInput("climate") && $input.climate.data.temp < $variable.frost',
              [tell],
            ),
          ],
          transitionEvents: [transition('$input.climate.data.temp >= 8', 'Warm')],
        },
        onEnter: {
          events: [
            event('limits', 'true', [{ setVariable: { variableName: 'frost', value: '2' } }]),
          ],
        },
      },
      {
        stateName: 'Warm',
        onEnter: {
          events: [event('wait', 'true', [{ setTimer: { timerName: 'warm', seconds: 600 } }])],
        },
        onInput: {
          transitionEvents: [
            transition('timeout("warm")', 'Alarm', [tell]),
            transition('!($input.climate.data.temp >= 8)', 'Cold'),
          ],
        },
        onExit: { events: [event('stop', 'true', [{ clearTimer: { timerName: 'warm' } }])] },
      },
      {
        stateName: 'Alarm',
        onInput: {
          transitionEvents: [
            transition('currentInput("climate") && 8 > $input.climate.data.temp', 'Cold'),
          ],
        },
        onExit: { events: [{ eventName: 'all clear', actions: [tell] }] },
      },
    ],
  },
};

/** Nothing heard for two minutes. */
export const heartbeat = {
  detectorModel: {
    detectorModelConfiguration: { detectorModelName: 'Heartbeat', key: 'id' },
    detectorModelDefinition: {
      initialStateName: 'Alive',
      states: [
        {
          stateName: 'Alive',
          onEnter: {
            events: [
              event('begin', 'currentInput("beat")', [
                { setTimer: { timerName: 'awake', seconds: 120 } },
              ]),
            ],
          },
          onInput: {
            events: [
              event('again', 'currentInput("beat")', [{ resetTimer: { timerName: 'awake' } }]),
            ],
            transitionEvents: [transition('timeout("awake")', 'Silent')],
          },
        },
        {
          stateName: 'Silent',
          onInput: { transitionEvents: [transition('currentInput("beat")', 'Alive', [tell])] },
        },
      ],
    },
  },
};

/** Two inputs: a word, and whether something is open. */
export const pump = {
  detectorModelName: 'Pump',
  key: 'id',
  detectorModelDefinition: {
    initialStateName: 'Off',
    states: [
      {
        stateName: 'Off',
        onInput: {
          transitionEvents: [
            transition(`currentInput('command') && $input.command.word == "start"`, 'On'),
          ],
        },
      },
      {
        stateName: 'On',
        onInput: {
          transitionEvents: [
            transition('currentInput("guard") && $input.guard.open', 'Off', [tell]),
            transition('currentInput("command") && $input.command.word != "start"', 'Off'),
          ],
        },
      },
    ],
  },
};
