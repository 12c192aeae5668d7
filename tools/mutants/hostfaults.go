package main

// hostFaults are faults in the worker, and in how it writes files.
var hostFaults = []fault{
	{
		name: "busy-host-upgrades", in: "agent/worker.Journal.deferred",
		body: `return j, false`,
		by:   tests("agent/worker", "TestDeferred|TestUpgradeWaitsForIdle"),
	},
	{
		name: "busy-lease-has-no-limit", in: "agent/worker/busy.judge",
		old: `found.Ends = earlier(found.Until, last)`, new: `found.Ends = found.Until`,
		by: tests("agent/worker/busy", "TestJudge|TestFirstSeen"),
	},
	{
		name: "file-is-not-synced", in: "agent/durable.disk.fill",
		old: `return d.sync(f)`, new: `return nil`,
		by: tests("agent/durable", "TestWriteFile"),
	},
	{
		name: "folder-is-not-synced", in: "agent/durable.disk.writeFile",
		old: `return d.syncFolder(filepath.Dir(path))`, new: `return nil`,
		by: tests("agent/durable", "TestWriteFile"),
	},
	{
		name: "file-is-written-in-place", in: "agent/durable.disk.writeFile",
		old: `os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")`, new: `os.Create(path)`,
		by: tests("agent/durable", "TestWriteFile|TestWriteFileFails"),
	},
	{
		name: "sum-of-journal-is-not-checked", in: "agent/format.Kind.DecodeSummed",
		old: `sum != sumOf(file[member])`, new: `sum == ""`,
		by: tests("agent/worker", "TestJournalFlippedAnywhere"),
	},
	{
		name: "command-is-taken-up-twice", in: "agent/worker.Journal.receive",
		old: `if r.Seq <= j.Seq {`, new: `if r.Seq < j.Seq {`,
		by: tests("agent/worker", "TestReceive|TestCrashAnywhere"),
	},
	{
		name: "command-for-another-host-counts", in: "agent/worker.Journal.receive",
		old: `case command.Host != host:`, new: `case command.Host == "":`,
		by: tests("agent/worker", "TestReceive|TestSimilarHostNames|TestHostileCommands"),
	},
	{
		name: "command-of-another-run-counts", in: "agent/worker.Journal.receive",
		old: `case r.Run != j.Run:`, new: `case r.Run < j.Run:`,
		by: tests("agent/worker", "TestReceive"),
	},
	{
		name: "late-command-counts", in: "agent/worker.Journal.receive",
		old: `case !now.Before(j.NotAfter):`, new: `case !now.Before(j.NotAfter) && j.Run == 0:`,
		by: tests("agent/worker", "TestReceive"),
	},
	{
		name: "log-in-place-of-another-is-not-noticed", in: "agent/worker.Journal.foreign",
		body: `return false`,
		by:   tests("agent/worker", "TestAnotherLog|TestReceive"),
	},
	{
		name: "step-is-repeated-on-a-restored-log", in: "agent/worker.LostStep.covers",
		old: `slices.Index(steps, l.Action) >= slices.Index(steps, a)`, new: `slices.Index(steps, l.Action) > slices.Index(steps, a)+9`,
		by: tests("agent/worker", "TestRestoredLog|TestRestoredNeverTwice"),
	},
	{
		name: "older-run-of-a-restored-log-is-new", in: "agent/worker.Journal.receiveForeign",
		old: `case command.Action == message.Prepare && timeOf(r).After(j.At):`, new: `case command.Action == message.Prepare:`,
		by: tests("agent/worker", "TestRestoredLog"),
	},
	{
		name: "work-without-a-journal", in: "agent/worker.Worker.receive",
		old: `return w.save(ctx, next)`,
		new: `w.journal, w.fresh = next, true
	return nil`,
		by: tests("agent/worker", "TestCrashAnywhere|TestJournalCannotBeWritten"),
	},
	{
		name: "upgrade-anew-after-a-crash", in: "agent/worker.Journal.Next",
		old: `if fresh && !j.Retry.Resume {`, new: `if fresh && !j.Retry.Resume || j.Run > 0 {`,
		by: simulated(tests("agent/worker", "TestNext|TestCrashAnywhere")...),
	},
	{
		name: "reboot-without-a-journal", in: "agent/worker.Worker.reboot",
		old: `if err := w.save(ctx, w.journal.askReboot()); err != nil {
			return err
		}`,
		new: `w.journal, w.fresh = w.journal.askReboot(), true`,
		by:  simulated(tests("agent/worker", "TestCrashAnywhere|TestReboot|TestRebootUnderWay")...),
	},
	{
		name: "accepted-reboot-is-asked-for-again", in: "agent/worker.Journal.nextReboot",
		old: `j.Reboot == Asked && !fresh && !late`, new: `j.Reboot != NotAsked && !fresh && !late`,
		by: simulated(tests("agent/worker", "TestNext|TestReboot|TestRebootUnderWay")...),
	},
	{
		name: "lost-reboot-is-not-asked-for-again", in: "agent/worker.Journal.nextReboot",
		old: `case j.Reboot == NotAsked, j.Reboot == Asked && !fresh && !late:`, new: `case j.Reboot == NotAsked:`,
		by: tests("agent/worker", "TestNext|TestReboot|TestCrashAnywhere"),
	},
	{
		name: "reboot-is-asked-for-again-after-the-run", in: "agent/worker.Journal.nextReboot",
		old: `late := !fresh && !now.Before(j.NotAfter)`, new: `late := false`,
		by: tests("agent/worker", "TestNext|TestReboot"),
	},
	{
		name: "reboot-is-asked-for-again-without-the-lease", in: "agent/worker.Journal.allow",
		old: `case do == DoReboot && j.Reboot != NotAsked && (s == taken || away):`, new: `case do == DoReboot && j.Reboot != NotAsked && s == requesting:`,
		by: tests("agent/worker", "TestAllow|TestReboot"),
	},
	{
		name: "two-reboot-commands-at-once", in: "agent/cli.computer.runReboot",
		old: `case errors.Is(err, unix.EWOULDBLOCK):
			return nil`,
		new: `case errors.Is(err, unix.EWOULDBLOCK):`,
		by:  tests("agent/cli", "TestRebootCommandOutlivesTheWorker"),
	},
	{
		name: "boot-id-is-ignored", in: "agent/worker.Journal.Next",
		old: `if bootID != j.BootID {`, new: `if bootID != "" {`,
		by: tests("agent/worker", "TestNext|TestReboot|TestCrashAnywhere"),
	},
	{
		name: "verify-is-left-out", in: "agent/worker.Journal.afterUpgrade",
		old: `case outcome == strategy.Done:
			j.Phase = Verifying
			return j`,
		new: `case outcome == strategy.Done:
			return j.answer(message.Done, nil)`,
		by: tests("agent/worker", "TestFaults|TestAfter"),
	},
	{
		name: "reply-before-its-journal", in: "agent/worker.Worker.step",
		old: `next := w.journal.After(do, outcome, err, w.Now())`,
		new: `next := w.journal.After(do, outcome, err, w.Now())
	if next.Phase == Answering {
		_ = w.HostLog.Reply(ctx, next.Run, message.Reply{Action: next.Action, Result: next.Result})
	}`,
		by: tests("agent/worker", "TestReplyComesAfterItsJournal"),
	},
	{
		name: "lost-reply-counts-as-sent", in: "agent/worker.Worker.step",
		old: `if do == DoReply && err != nil {`, new: `if do == DoReply && err != nil && w.journal.Run == 0 {`,
		by: tests("agent/worker", "TestLostReply"),
	},
	{
		name: "lost-journal-is-guessed", in: "agent/worker.Blank",
		old: `open.Phase, open.Result = Answering, unknownPast`, new: `open.Phase, open.Result = begins(open.Action), ""`,
		by: simulated(tests("agent/worker", "TestBlank|TestBlankNeverActs|TestLostJournal")...),
	},
	{
		name: "two-workers-of-a-host-upgrade", in: "agent/worker.Worker.away",
		old: `return w.blank || w.journal.Away || now.state == held && now.epoch != w.journal.Epoch`, new: `return w.blank`,
		by: tests("agent/worker", "TestTakeovers|TestAbsence|TestTakeover"),
	},
	{
		name: "drain-after-undrain", in: "agent/worker.tasks.take",
		old: `case t.Kind == message.Drain && t.Run <= s.undrained:`, new: `case t.Kind == message.Drain && t.Run < s.undrained:`,
		by: tests("agent/worker", "TestTakeTask|TestTasks"),
	},
	{
		name: "plan-is-not-kept", in: "agent/worker.Worker.writePlan",
		body: `return nil`,
		by:   tests("agent/worker", "TestPlanIsKept|TestCrashAnywhere"),
	},
	{
		name: "plan-of-another-run-counts", in: "agent/worker.readPlan",
		old: `kept.Run != j.Run || !kept.RunAt.Equal(j.RunAt)`, new: `kept.Run == 0`,
		by: tests("agent/worker", "TestPlanIsLost"),
	},
	{
		name: "lost-plan-is-nothing-to-do", in: "agent/worker.Worker.planFor",
		old: `return message.Plan{}, &planLostError{do, err}`, new: `return message.Plan{}, nil`,
		by: tests("agent/worker", "TestPlanIsLost"),
	},
	{
		name: "only-upgrades-are-confirmed", in: "agent/worker.Worker.bootIsDue",
		body: `return false`,
		by:   tests("agent/worker", "TestEachStartIsConfirmed|TestMachineFallsBack"),
	},
	{
		name: "upgrade-is-confirmed-before-its-checks", in: "agent/worker.Worker.bootIsDue",
		old: `case Upgrading, Verifying, RollingBack, Rebooting:`, new: `case RollingBack:`,
		by: tests("agent/worker", "TestUpgradeIsConfirmedAfterVerify|TestUnwellSystemIsNotConfirmed"),
	},
	{
		name: "upgrade-is-confirmed-before-the-checks-of-its-run", in: "agent/worker.Worker.callVerify",
		old: `case err == nil && w.boots.onTrial(boot, w.Now()):`, new: `case err == nil && boot.Running == "":`,
		by: simulated(tests("agent/worker", "TestConfirmedAfterChecks|TestFailedChecksConfirmNothing")...),
	},
	{
		name: "start-confirms-what-is-on-trial", in: "agent/worker.Worker.confirmBoot",
		old: `case w.boots.onTrial(boot, w.Now()):`, new: `case boot.Running == "":`,
		by: simulated(tests("agent/worker", "TestFailedChecksConfirmNothing|TestRebootBeforeItsCommand|TestTakenOverBeforeChecks")...),
	},
	{
		name: "checks-of-an-upgrade-under-way-count", in: "agent/worker.Worker.settle",
		old: `p.began.works() || `, new: ``,
		by: tests("agent/worker", "TestPassBeforeAnUpgrade"),
	},
	{
		name: "checks-before-an-upgrade-count", in: "agent/worker.Worker.settle",
		old: ` || p.began.Seq != j.Seq`, new: ``,
		by: tests("agent/worker", "TestPassBeforeAnUpgrade"),
	},
	{
		name: "late-task-reaches-a-later-process", in: "agent/gate.Client.Tasked",
		old: `t.Incarnation == c.Incarnation`, new: `true`,
		by: tests("agent/log/jetstream", "TestLateTask"),
	},
	{
		name: "task-is-for-any-process", in: "agent/gate.Gate.Addressed",
		old: `	t.Incarnation = at.Incarnation
`, new: ``,
		by: tests("agent/log/jetstream", "TestTask|TestLateTask"),
	},
	{
		name: "passed-checks-confirm-nothing", in: "agent/worker.Worker.confirmPassed",
		old: `return w.confirm(ctx, boot)`, new: `return nil`,
		by: simulated(tests("agent/worker", "TestConfirmedAfterChecks|TestPassedAndNotConfirmed")...),
	},
	{
		name: "next-run-ends-a-trial", in: "agent/worker.boots.commanded",
		old: `case !checks, t != nil`, new: `case !checks, len(installs) == 0, t != nil`,
		by: simulated(tests("agent/worker", "TestTrial|TestFailedChecksConfirmNothing")...),
	},
	{
		name: "failure-of-this-boot-outlives-a-verify", in: "agent/worker.Worker.notJudged",
		body: `return nil`,
		by:   tests("agent/worker", "TestVerifiedAfterFailure"),
	},
	{
		name: "accepted-version-stays-on-trial", in: "agent/worker.Worker.takeAccepted",
		body: `return nil`,
		by:   tests("agent/worker", "TestAcceptedOnTrial"),
	},
	{
		name: "trial-never-ends-without-checks", in: "agent/worker.boots.commanded",
		old: `b.Trial = nil`, new: `b.Trial = t`,
		by: tests("agent/worker", "TestTrial|TestTrialEndsWithoutChecks"),
	},
	{
		name: "checks-pass-on-the-system-before", in: "agent/worker.Worker.stillUpgraded",
		old: `if err := w.nothingMissing(ctx, job); err != nil {`, new: `if err := w.nothingMissing(ctx, job); err != nil && job.Run == 0 {`,
		by: tests("agent/worker", "TestGoesBackBeforeChecks"),
	},
	{
		name: "passed-checks-are-run-again", in: "agent/worker.boots.passedIn",
		body: `return false`,
		by:   tests("agent/worker", "TestPassedIsRemembered"),
	},
	{
		name: "machine-that-fell-back-is-not-told", in: "agent/worker.Worker.started",
		old: `boot.Failed != "" && w.boots.Judged != w.bootID`, new: `boot.Failed != "" && w.boots.Judged == w.bootID`,
		by: tests("agent/worker", "TestMachineFallsBack"),
	},
	{
		name: "worker-that-stands-by-confirms", in: "agent/worker.Worker.bootIsDue",
		old: `default:
		return false`, new: `default:
		return true`,
		by: tests("agent/worker", "TestStandbyConfirmsNothing"),
	},
	{
		name: "failure-of-another-worker-is-forgotten", in: "agent/worker.Worker.mayForget",
		old: `w.journal.pastPrepare() && w.planned(boot.Failed) != ""`, new: `boot.Running != ""`,
		by: tests("agent/worker", "TestFailureOfAnotherIsKept"),
	},
	{
		name: "version-that-fell-back-is-offered-again", in: "agent/worker.boots.standing",
		body: `return nil`,
		by:   tests("agent/worker", "TestRejectedVersion|TestMachineFallsBack"),
	},
	{
		name: "rollback-reboots-again", in: "agent/worker.Journal.afterRollback",
		old: `outcome == strategy.RebootRequired && j.Back == "":`, new: `outcome == strategy.RebootRequired && j.Run > 0:`,
		by: tests("agent/worker", "TestRollbackRebootsOnce"),
	},
	{
		name: "rollback-is-answered-before-its-reboot", in: "agent/worker.Journal.afterRollback",
		old: `outcome == strategy.RebootRequired && j.Back == "":`, new: `outcome == strategy.RebootRequired && j.Run == 0:`,
		by: tests("agent/worker", "TestRollbackReboots"),
	},
	{
		name: "lock-is-not-waited-for", in: "agent/worker.Journal.retry",
		body: `return j, false`,
		by:   tests("agent/worker", "TestRetry|TestLockIsWaitedFor"),
	},
	{
		name: "locked-upgrade-is-started-again-unasked", in: "agent/worker.Journal.Next",
		old: `if fresh && !j.Retry.Resume {`, new: `if fresh {`,
		by: tests("agent/worker", "TestRetry|TestLockIsWaitedFor"),
	},
	{
		name: "limit-of-a-step-begins-with-each-try", in: "agent/worker.Journal.retry",
		old: `if r.Tries == 0 {`, new: `if r.Tries >= 0 {`,
		by: tests("agent/worker", "TestRetry|TestLockIsWaitedForOverRestarts"),
	},
	{
		name: "class-is-lost-in-a-rollback", in: "agent/worker.Journal.answerFailure",
		body: `return j.answer("", errors.New(text))`,
		by:   tests("agent/worker", "TestClassIsReplied"),
	},
	{
		name: "done-by-exit-code", in: "agent/worker.Worker.callVerify",
		old: `if err := w.nothingMissing(ctx, job); err != nil`, new: `if err := w.nothingMissing(ctx, job); err != nil && job.Run == 0`,
		by: tests("agent/worker", "TestDoneIsProvedByThePlan"),
	},
	{
		name: "reboot-required-by-exit-code", in: "agent/worker.Worker.callUpgrade",
		old: `return outcome, w.nothingMissing(ctx, job)`, new: `return outcome, nil`,
		by: tests("agent/worker", "TestDoneIsProvedByThePlan"),
	},
	{
		name: "full-disk-ends-the-worker", in: "agent/worker.Worker.persist",
		old: `if err != nil && !temporary(err) {`, new: `if err != nil {`,
		by: tests("agent/worker", "TestDiskFull"),
	},
	{
		name: "read-only-disk-ends-the-worker", in: "agent/worker.temporary",
		old: `syscall.EIO, syscall.EROFS}`, new: `syscall.EIO}`,
		by: tests("agent/worker", "TestDiskFull"),
	},
	{
		name: "reboot-command-dies-with-the-worker", in: "agent/cli.await",
		old: `!errors.Is(ctx.Err(), context.DeadlineExceeded) || p.Kill()`, new: `p.Kill()`,
		by: tests("agent/cli", "TestRebootCommandOutlivesTheWorker"),
	},
	{
		name: "reboot-command-prints-without-bound", in: "agent/cli.printed.bound",
		old: `taken.Blocks*512 <= maxOutput`, new: `taken.Blocks*512 <= maxOutput<<8`,
		by: tests("agent/cli", "TestRebootCommandPrintsWithoutEnd"),
	},
	{
		name: "own-note-is-what-the-script-said", in: "agent/worker/strategy/exec.tail.note",
		old: `WriteString("\n" + dropped`, new: `WriteString("" + dropped`,
		by: tests("agent/worker/strategy/exec", "TestOwnNoteIsNotWhatTheScriptSaid"),
	},
	{
		name: "versions-takes-as-long-as-a-step", in: "agent/worker/strategy/exec.WithStep",
		old: `Versions: look(actionVersions)`, new: `Versions: step`,
		by: tests("agent/cli", "TestLimits"),
	},
	{
		name: "step-ends-before-its-script", in: "agent/cli.workerCommand.limits",
		old: `2*time.Duration(c.StepLimit) + graceLimit`, new: `time.Duration(c.StepLimit) + graceLimit`,
		by: tests("agent/cli", "TestLimits"),
	},
	{
		name: "script-that-has-ended-is-overdue", in: "agent/worker/strategy/exec.Strategy.supervise",
		old: `if !p.Ended() {
			s.stop(p, lock)`,
		new: `if p != nil {
			s.stop(p, lock)`,
		by: tests("agent/worker/strategy/exec", "TestWorkerStoppedAcrossTheLimit|TestEndAndLimitAreNewsAtOnce"),
	},
	{
		name: "lock-that-is-free-is-held", in: "agent/worker/strategy/exec.Strategy.await",
		old: `time.After(script.Notice)`, new: `time.After(script.Notice - time.Second)`,
		by: tests("agent/worker/strategy/exec", "TestReleaseAndLimitAreNewsAtOnce"),
	},
	{
		name: "check-that-has-passed-is-overdue", in: "agent/script.Run",
		old: `if killed && err != nil {`, new: `if killed || err != nil {`,
		by: tests("agent/script", "TestExitCountsThoughItsTimeIsOver"),
	},
	{
		name: "lease-given-back-by-a-replaced-process", in: "agent/gate.Lease.giveBack",
		old: `!l.holds(worker, incarnation)`, new: `l.Worker != worker || l.Vacant`,
		by: tests("agent/gate", "TestGiveBackAtGateBehind"),
	},
	{
		name: "baseline-is-noted-anew", in: "agent/check.Runner.Baseline",
		old: `if _, err := r.baselineOf(run); err == nil {`, new: `if _, err := r.baselineOf(run); err == nil && run == 0 {`,
		by: tests("agent/check", "TestUnits"),
	},
	{
		name: "upgrade-without-a-baseline", in: "agent/worker.Worker.call",
		old: `w.Checks.Baseline(ctx, job.Run)`, new: `ctx.Err()`,
		by: tests("agent/worker", "TestBaseline"),
	},
	{
		name: "inhibitor-is-passed-over", in: "agent/worker/logind.holdUp",
		old: `one.Mode == "block" || one.Mode == "block-weak"`, new: `one.Mode == "block-weak"`,
		by: tests("agent/worker/logind", "TestWait|TestInhibitedInTheLastMoment"),
	},
	{
		name: "another-flavour-wants-a-reboot", in: "agent/worker/osinfo.Kernels.Outdated",
		old: `flavour(newest) == flavour(k.Running) && `, new: ``,
		by: tests("agent/worker/osinfo", "TestOutdated"),
	},
	{
		name: "lease-given-back-in-mid-work", in: "agent/worker.Journal.over",
		old: `default:
			return false`,
		new: `default:
			return true`,
		by: tests("agent/worker", "TestReplaced|TestOver"),
	},
}
