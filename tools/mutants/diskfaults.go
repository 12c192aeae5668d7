package main

// diskFaults are faults in what becomes of a store whose disk was full.
var diskFaults = []fault{
	{
		name: "marks-of-an-ill-store", in: "agent/natsd.marker.mark",
		old: `if err := healthy(m.nats.Healthz); err != nil {`, new: `if m.nats == nil {`,
		by: tests("agent/natsd", "TestFullDisk"),
	},
	{
		name: "refused-record-keeps-its-number", in: "agent/natsd/store.dropIndexes",
		old: `err = errors.Join(err, os.Remove(index))`, new: `err = errors.Join(err, os.Chmod(index, 0o600))`,
		by: tests("agent/natsd", "TestFullDisk"),
	},
	{
		name: "ill-store-is-sealed", in: "agent/natsd.Server.Close",
		old: `finish = s.prepare`, new: `finish = func() error { return store.Seal(s.dir) }`,
		by: tests("agent/natsd", "TestStoppedOnFullDisk"),
	},
	{
		name: "refused-record-is-the-last", in: "agent/log/jetstream.Log.Last",
		old: `return info.State.FirstSeq + info.State.Msgs - 1, nil`, new: `return info.State.LastSeq, nil`,
		by: tests("agent/natsd", "TestFullDisk"),
	},
	{
		name: "failure-is-logged-each-time", in: "agent/throttle.Failing.Due",
		old: `after < Again`, new: `after < 0`,
		by: tests("agent/throttle", "TestFailing"),
	},
	{
		name: "server-repeats-itself", in: "agent/natsd.newLogger",
		old: `throttle.Log(log, 1, throttle.Again)`, new: `throttle.Log(log, 1, throttle.Again/1000)`,
		by: tests("agent/natsd", "TestLogRepeats"),
	},
}
