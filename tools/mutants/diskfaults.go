package main

// diskFaults are faults in what becomes of a store whose disk was full.
var diskFaults = []fault{
	{
		name: "marks-of-an-ill-store", file: "agent/natsd/marks.go",
		old: `if err := healthy(m.nats.Healthz); err != nil {`, new: `if m.nats == nil {`,
		by: tests("agent/natsd", "TestFullDisk"),
	},
	{
		name: "refused-record-keeps-its-number", file: "agent/natsd/unwritten.go",
		old: `err = errors.Join(err, os.Remove(index))`, new: `err = errors.Join(err, os.Chmod(index, 0o600))`,
		by: tests("agent/natsd", "TestFullDisk"),
	},
	{
		name: "ill-store-is-sealed", file: "agent/natsd/natsd.go",
		old: `finish = unwritten`, new: `finish = seal`,
		by: tests("agent/natsd", "TestStoppedOnFullDisk"),
	},
	{
		name: "refused-record-is-the-last", file: "agent/log/jetstream/jetstream.go",
		old: `return info.State.FirstSeq + info.State.Msgs - 1, nil`, new: `return info.State.LastSeq, nil`,
		by: tests("agent/natsd", "TestFullDisk"),
	},
	{
		name: "trouble-is-told-each-time", file: "agent/trouble/trouble.go",
		old: `after < Again`, new: `after < 0`,
		by: tests("agent/trouble", "TestSpell"),
	},
	{
		name: "server-repeats-itself", file: "agent/natsd/logger.go",
		old: `known && now.Sub(last) < trouble.Again`, new: `known && now.Sub(last) < trouble.Again/1000`,
		by: tests("agent/natsd", "TestLogRepeats"),
	},
}
