package main

// faults are the deliberate faults, by the invariant that each breaks. The numbers are
// those of package oracle, which ARCHITECTURE.md explains under "What must always hold".
var faults = []fault{
	// 1. In a stage never more hosts are out of service than its limit.
	{"stage-has-room-for-all", "agent/run.stage.roomFor", `return true`, "", simulated(scripts, invariants)},
	{"silent-host-has-no-slot", "agent/run/roster.Host.IsSilent", `return false`, "", simulated(scripts, invariants)},
	{"nobody-is-out-of-service", "agent/run/roster.Host.Out", `return false`, "", simulated(scripts, invariants)},
	{"slot-freed-while-something-is-owed", "agent/wire/message.Debt.Any", `return false`, "", simulated(scripts, invariants)},
	{"out-of-service-ends-with-the-run", "agent/run/roster.Host.lasts", `return false`, "", append(tests("agent/controller", "TestSilentBeyondTheRun"), scripts, invariants)},
	{"next-run-takes-all-for-well", "agent/run/roster.Roster.Lasting", `return zero1`, "", simulated(scripts)},
	{"silence-is-not-told-to-the-run", "agent/run.State.tellPresence", `return nil`, "", tests("agent/controller", "TestSilenceDuringARun")},
	{"deleted-host-keeps-its-slot", "agent/run.State.tellDeleted", `return nil`, "", tests("agent/controller", "TestDeletedAfterTheEnd")},
	{"stage-is-done-before-its-hosts", "agent/run.member.left", `return false`, "", simulated(scripts)},
	{"hosts-of-all-stages-start", "agent/run.stages.soaking", `return false`, "", []suite{scripts}},
	{"approval-is-ignored", "agent/run.stage.approved", `return true`, "", []suite{scripts, invariants}},
	{"checks-before-host-are-ignored", "agent/run.State.unchecked", `return false`, "", simulated(scripts)},
	{"checks-after-host-are-ignored", "agent/run.rules.checksHosts", `return false`, "", []suite{scripts, invariants}},
	{"host-is-deleted-that-may-be-at-work", "agent/controller.state.forgettable", `return nil`, "", tests("agent/controller", "TestForgetAfterARestart")},
	{"deletion-is-answered-before-the-log-has-it", "agent/controller.state.forgot", `return nil`, "", tests("agent/controller", "TestForgetIsOnTheLog")},

	// 9. No host leaves service while a cell of a disruption budget has no free place for it.
	{"budget-is-asked-for-the-stage-only", "agent/run/roster.Roster.full", `return -1`, "", simulated(scripts, invariants)},
	{"place-is-not-given-back", "agent/run/roster.cell.add", `$0.out, $0.reserved = $0.out+max(0, $2), $0.reserved+max(0, $3)`, "", append(tests("agent/run/roster", "TestCells"), scripts, invariants)},
	{"edited-budgets-are-not-told", "agent/run.State.tellBudgets", `return nil`, "", []suite{scripts}},
	{"budget-is-asked-for-each-run", "agent/run.Ledger.rosters", `return nil`, "", append(tests("agent/run", "TestOpenedWithSameBudgets|TestFairness"), sideBySide)},
	{"edited-budgets-count-in-one-environment", "agent/run.Ledger.CellsOf", `return message.Only($2, func(host string) bool { for _, member := range named($1) { if member == host { return true } }; return false })`, "", append(tests("agent/run", "TestOpenedWithOtherBudgets"), tests("agent/controller", "TestBudgetEditedBetweenRuns")...)},
	{"host-of-an-ended-run-is-told-to-nobody", "agent/run.Ledger.Unwatched", `return $0.home($1) == nil`, "", append(tests("agent/run", "TestNeighbourOfEndedRun"), tests("agent/controller", "TestNeighbourOfAnotherEnvironment")...)},
	{"neighbour-is-of-no-environment", "agent/controller.state.takesIn", `return`, "", tests("agent/controller", "TestNeighbourOfAnotherEnvironment")},
	{"lock-is-granted-without-asking-the-budget", "agent/run/roster.Cells.BlockingAny", `return zero1, false`, "", simulated(scripts, invariants)},
	{"locked-host-is-in-service", "agent/run/roster.Host.IsLocked", `return false`, "", simulated(scripts, invariants)},
	{"lock-ends-with-the-run", "agent/run.lockAll", `return`, "", simulated(scripts, invariants)},
	{"lock-is-trimmed", "agent/run.Ledger.Relock", `return nil`, "", tests("agent/controller", "TestLockOutlivesTheLog")},
	{"neighbour-is-not-told", "agent/run.State.tellNeighbours", `return nil`, "", []suite{scripts}},

	// 2. A host executes upgrade and reboot at most once per run, and says done only if that
	// is true.
	{"log-in-place-of-another-is-not-noticed", "agent/host/decide.Journal.Foreign", `return false`, "", []suite{{pkg: "agent/host/decide", names: "TestReceive"}, {pkg: "agent/host/worker", names: "TestAnotherLog"}}},
	{"action-is-repeated-on-a-restored-log", "agent/host/decide.LostAction.covers", `return false`, "", tests("agent/host/decide", "TestRestoredLog|TestRestoredNeverTwice")},
	{"two-workers-of-a-host-upgrade", "agent/host/decide.State.away", `return false`, "", tests("agent/host/worker", "TestTakeovers|TestAbsence|TestTakeover")},
	{"lost-journal-is-a-new-host", "agent/host/decide.blank", `return zero1`, "", tests("agent/host/decide", "TestBlank")},
	{"worker-that-cannot-know-does-not-say-so", "agent/wire/message.ReplyOutcome.Beside", `return ""`, "", append(tests("agent/wire/message", "TestResults"), tests("agent/log/jetstream", "TestNewRun")...)},
	{"standby-confirms", "agent/host/decide.State.confirmIsDue", `return $0.Unconfirmed != NothingLeft`, "", []suite{{pkg: "agent/host/decide", names: "TestRulesOfATrial"}, {pkg: "agent/host/worker", names: "TestStandbyConfirmsNothing"}}},
	{"plan-is-not-kept", "agent/host/worker.Worker.writePlan", `return nil`, "", tests("agent/host/worker", "TestPlanIsKept|TestCrashAnywhere")},
	{"host-without-a-plan-is-up-to-date", "agent/host/worker.Worker.proves", `return true`, "", tests("agent/host/worker", "TestDoneWithoutAPlan")},
	{"removed-audit-log-is-new", "agent/identity/audit.Log.again", `return nil`, "", tests("agent/identity/audit", "TestFolderGone")},
	{"change-without-its-note", "agent/api.server.record", `return $1.handle($0, $2)`, "", tests("agent/api", "TestAuditFails")},
	{"join-token-lets-in-any-number", "agent/identity/join.tokenFile.admits", `return nil`, "", tests("agent/identity/join", "TestPlaces")},
	{"checks-at-the-site-reach-its-machine", "agent/base/dial.Rule.Check", `return nil`, "", tests("agent/host/check", "TestLocal")},
	{"only-upgrades-are-confirmed", "agent/host/decide.State.confirmIsDue", `return false`, "", tests("agent/host/worker", "TestEachStartIsConfirmed|TestMachineFallsBack")},
	{"old-checks-count", "agent/host/decide.State.outdated", `return false`, "", tests("agent/host/decide", "TestPassBeforeAnUpgrade")},
	{"checks-pass-on-the-system-before", "agent/host/worker.Worker.stillUpgraded", `return nil`, "", tests("agent/host/worker", "TestGoesBackBeforeChecks")},
	{"passed-checks-are-run-again", "agent/host/decide.Boots.PassedIn", `return false`, "", tests("agent/host/worker", "TestPassedIsRemembered")},
	{"version-that-fell-back-is-offered-again", "agent/host/decide.Boots.Standing", `return nil`, "", tests("agent/host/worker", "TestRejectedVersion|TestMachineFallsBack")},
	{"busy-host-upgrades", "agent/host/decide.Journal.deferred", `return $0, false`, "", []suite{{pkg: "agent/host/decide", names: "TestDeferred"}, {pkg: "agent/host/worker", names: "TestUpgradeWaitsForIdle"}}},
	{"lease-is-given-back-in-mid-work", "agent/host/decide.Journal.Over", `return true`, "", []suite{{pkg: "agent/host/decide", names: "TestOver"}, {pkg: "agent/host/worker", names: "TestReplaced"}}},
	{"apt-unpacked-is-installed", "agent/host/strategy/apt.installed.isInstalled", `return true`, "", tests("agent/host/strategy/apt", "TestMissing")},
	{"apt-installs-what-is-not-planned", "agent/host/strategy/apt.beyond", `return nil`, "", tests("agent/host/strategy/apt", "TestBeyond")},
	{"dnf-is-done-by-its-exit-status", "agent/host/strategy/dnf.database.missing", `return nil`, "", tests("agent/host/strategy/dnf", "TestMissing")},
	{"other-mounts-are-not-synced", "agent/host/strategy/hostfs.mount.syncs", `return $0.path == "/", ""`, "", tests("agent/host/strategy/hostfs", "TestSyncMounts")},
	{"done-is-not-on-disk", "agent/host/strategy/apt.call.toDisk", `return nil`, "", tests("agent/host/strategy/apt", "TestDoneIsOnDisk")},
	{"apt-resume-believes-records", "agent/host/strategy/apt.call.proveContents", `return nil`, "", tests("agent/host/strategy/apt", "TestKilledAnywhere")},
	{"dnf-resume-believes-records", "agent/host/strategy/dnf.differs", `return false`, "", tests("agent/host/strategy/dnf", "TestResumeBelievesNoRecord")},
	{"damaged-archive-is-installed", "agent/host/strategy/apt.call.dropDamaged", `return nil, nil`, "", tests("agent/host/strategy/apt", "TestDamagedArchives")},
	{"rollback-takes-what-others-installed", "agent/host/strategy.ToUndo", `return Undo{Back: Reversed($1)}`, "", append(tests("agent/host/strategy", "TestToUndo"), tests("agent/host/strategy/apt", "TestRollbackLeavesWhatOthersInstalled")...)},
	{"rolled-back-is-not-proved", "agent/host/worker.Worker.toUndo", `return strategy.Undo{}, nil`, "", tests("agent/host/worker", "TestRolledBackIsProved")},
	{"nothing-changed-is-rolled-back", "agent/host/strategy.Undo.Unchanged", `return false`, "", tests("agent/host/worker", "TestRolledBackIsProved")},
	{"prepare-repairs-what-others-left", "agent/host/strategy/begun.Covers", `return true`, "", append(tests("agent/host/strategy/begun", "TestBegun"), tests("agent/host/strategy/apt", "TestPrepareRepairsOwnRuns")...)},
	{"action-kills-its-machine-for-ever", "agent/host/decide.State.interrupted", `return $0, false`, "", append(tests("agent/host/decide", "TestInterrupted"), tests("agent/host/worker", "TestActionThatEndsItsWorker")...)},
	{"killed-action-has-failed", "agent/host/strategy/exec.Strategy.endedBy", `return $1.class()`, "", tests("agent/host/strategy/exec", "TestClassOfScripts|TestKilledStrategyIsResumed")},
	{"remedy-needs-what-no-repository-has", "agent/host/strategy/apt.call.gone", `return nil, nil`, "", tests("agent/host/strategy/apt", "TestRepairIsHonest")},
	{"remedy-leaves-a-package-in-a-mess", "agent/host/strategy/apt.condition.remedy", `return "dpkg --configure -a; apt-get -f install"`, "", tests("agent/host/strategy/apt", "TestRepairIsHonest")},
	{"damaged-bundle-is-kept", "agent/host/strategy/rauc.Strategy.forget", `return nil`, "", tests("agent/host/strategy/rauc", "TestDamagedBundle")},
	{"image-is-done-by-its-exit-status", "agent/host/strategy.Systems.Missing", `return nil`, "", tests("agent/host/strategy", "TestSystems")},

	// 3. No command after not-after, after an abort, inside a freeze, or before enough hosts
	// are prepared.
	{"not-after-never-comes", "agent/run.Deadline.overAt", `return false`, "", []suite{scripts, invariants}},
	{"host-starts-that-will-be-late", "agent/run.Deadline.fits", `return true`, "", []suite{scripts}},
	{"freeze-of-a-run-is-ignored", "agent/run.Deadline.freeze", `return`, "", []suite{scripts}},
	{"freeze-is-not-told-to-the-run", "agent/run.State.tellFreeze", `return nil`, "", simulated(tests("agent/controller", "TestFreezeDuringARun")...)},
	{"freeze-at-a-start-is-ignored", "agent/controller.state.nextFreeze", `return zero1, nil`, "", tests("agent/controller", "TestFreezeWins")},
	{"text-that-is-no-calendar-replaces-a-good-one", "agent/wire/v1.PublishedEvents", `return nil, nil, nil`, "", append(tests("agent/wire/v1", "TestPublishedEvents"), tests("agent/controller/fetch", "TestAfter|FuzzAnswer")...)},
	{"calendar-comes-from-another-host", "agent/controller/fetch.stayOnHost", `return nil`, "", tests("agent/controller/fetch", "TestAsk")},
	{"freeze-that-was-never-fetched-forbids-nothing", "agent/controller.intent.addFetched", `return nil`, "", tests("agent/controller", "TestFetchedCalendars")},
	{"too-few-are-prepared", "agent/run.State.enough", `return`, "", []suite{scripts, invariants}},
	{"run-waits-for-hosts-that-are-late", "agent/run.State.beginsWithoutLate", `return zero1`, "", append(tests("agent/controller", "TestPrepareThatHangs"), scripts, invariants)},
	{"stage-waits-for-hosts-that-are-late", "agent/run.State.leavesOutLate", `return zero1`, "", append(tests("agent/controller", "TestPrepareThatHangs"), scripts)},
	{"late-canary-is-passed-over", "agent/run.stages.lastWithHosts", `return true`, "", []suite{scripts, invariants}},
	{"no-failure-is-too-many", "agent/run.failures.add", `return ""`, "", simulated(scripts, invariants)},
	{"busy-host-is-sent-upgrade", "agent/run.State.passOver", `return nil`, "", []suite{scripts}},

	// 4. A reply counts for the host whose credentials sent it, once, and only as the answer
	// to its last command.
	{"reply-to-a-lost-command-is-taken", "agent/log/gate.Gate.commanded", `return true, nil`, "", tests("agent/log/jetstream", "TestOneAnswer")},
	{"reply-to-an-older-run-is-taken", "agent/log/gate.cache.commanded", `return true`, "", tests("agent/log/gate", "TestReplyToARunBefore")},
	{"reply-is-taken-twice", "agent/log/jetstream.gateLog.AppendReply", "", "WithExpectLastSequencePerSubject", tests("agent/log/jetstream", "TestOneAnswer")},
	{"lease-is-anybody's", "agent/log/gate.Lease.holds", `return true`, "", tests("agent/log/gate", "TestClonedMachine|TestTakeOver")},
	{"lease-is-granted-to-each", "agent/log/gate.Lease.acquire", `return $0, true`, "", tests("agent/log/gate", "TestTakeOver|TestLeaseOutlivesTheGate|TestLeaseForOneOfMany")},
	{"newest-at-a-gate-behind", "agent/log/gate.cache.current", `return nil`, "", tests("agent/log/gate", "TestNewestAtGateBehind")},
	{"task-is-for-any-process", "agent/log/gate.Gate.Addressed", `return $1, true`, "", tests("agent/log/jetstream", "TestTask|TestLateTask")},

	// 5. A host moves past a command only after the effect and the reply are on disk; and
	// what is on the log stays there.
	{"file-is-not-synced", "agent/base/durable.disk.fill", `_, err := $1.Write($2); return errors.Join(err, $1.Chmod($3))`, "", tests("agent/base/durable", "TestWriteFile")},
	{"file-is-written-in-place", "agent/base/durable.disk.writeFile", `return os.WriteFile($1, $2, $3)`, "", tests("agent/base/durable", "TestWriteFile|TestWriteFileFails")},
	{"sum-of-journal-is-not-checked", "agent/wire/format.sumOf", `return ""`, "", tests("agent/host/decide", "TestJournalFlippedAnywhere")},
	{"full-disk-ends-the-worker", "agent/host/worker.temporary", `return false`, "", tests("agent/host/worker", "TestDiskFull")},
	{"write-is-acknowledged-before-its-mark", "agent/log/natsd.Server.Mark", `return nil`, "", tests("agent/site", "TestAcknowledgedWriteIsLost")},
	{"stream-in-the-making-is-lost", "agent/log/natsd.missingStreams", `return nil`, "", tests("agent/log/natsd", "TestHealthy|TestStreamBeingMade")},
	{"append-without-compare-and-set", "agent/log/jetstream.Log.append", "", "WithExpectLastSequenceForSubject", tests("agent/log/jetstream", "TestOneWriter")},
	{"log-is-not-compared", "agent/log/guard.Guard.See", `return nil`, "", tests("agent/log/guard", "TestGap|TestGuard")},
	{"end-of-log-is-not-compared", "agent/log/guard.Guard.End", `return nil`, "", tests("agent/log/guard", "TestGuard")},
	{"lost-reply-is-not-missed", "agent/log/guard.Witness.Compare", `return nil`, "", tests("agent/log/guard", "TestWitness")},
	{"hosts-are-no-witnesses", "agent/controller.witnesses.hear", `return false`, "", tests("agent/controller", "TestHostsKnowMore|TestPositionAheadOfTheFold")},
	{"alarm-does-not-stop-the-controller", "agent/controller.state.ready", `return nil`, "", tests("agent/controller", "TestLogThatWentBackwards|TestAsksAtAnAlarm|TestAlarmIsShown|TestAlarmWithoutARun")},
	{"log-is-trimmed-before-the-history-has-it", "agent/controller.state.allKept", `return true`, "", tests("agent/controller", "TestTrim|TestTrimmedLog|TestHistoryThatCannotBeKept")},
	{"log-is-trimmed-before-the-last-runs-are-kept", "agent/controller.hosts.lastRuns", `return nil`, "", tests("agent/controller", "TestLastRunsOutliveTheLog")},
	{"end-of-a-run-is-noted-after-later-words-of-a-host", "agent/controller.isNoted", `return false`, "", tests("agent/controller", "TestOutdatedUntilUpgraded")},

	// 6. A write of the configuration names the revision that it is based on.
	{"precondition-is-ignored", "agent/api.precondition", `return 0`, "", tests("agent/api", "TestPrecondition|TestConfigObject|TestRolloutObject")},
	{"delete-without-revision", "agent/log/store.intent.remove", "", "WithExpectLastSequencePerSubject", tests("agent/log/store", "TestContract")},
	{"conflict-is-not-recognized", "agent/log/store.translate", `return $1`, "", tests("agent/log/store", "TestContract")},

	// 7. A run ends.
	{"unanswering-host-is-awaited", "agent/run.member.isAwaited", `return true`, "", []suite{scripts, invariants}},
	{"released-host-is-awaited", "agent/run/roster.Host.Works", `return "", false`, "", append(tests("agent/controller", "TestRetryBesideReleased"), scripts)},
	{"clock-set-back-is-ignored", "agent/run.Ledger.follow", `return`, "", []suite{scripts}},
	{"clock-set-back-is-not-followed", "agent/controller.state.followClock", `return`, "", tests("agent/controller", "TestClockIsSetBack|TestSilentAfterTheClockWasSetBack")},
	{"forecast-counts-slots-alone", "agent/run.State.waitForSlots", `return nil, true`, "", tests("agent/run", "TestForecastOfSlots")},
	{"nobody-is-overdue", "agent/run.State.Overdue", `return nil`, "", append(tests("agent/controller", "TestNewsOfOverdueHosts"), scripts)},

	// 8. A window that opens while the site is up has its run, or a reason that is told.
	{"window-has-no-run", "agent/controller.hadRun", `return true`, "", simulated(tests("agent/controller", "TestDue")...)},
	{"skip-of-a-window-is-ignored", "agent/wire/v1.Skips.Of", `return nil`, "", simulated(append(tests("agent/wire/v1", "TestSkips"), tests("agent/controller", "TestSkipWindow")...)...)},
	{"skip-of-another-environment-is-shown", "agent/controller.skippedOf", `return nil`, "", tests("agent/controller", "TestSkipIsShown")},
	{"skips-that-cannot-be-read-are-none", "agent/controller.skipsOf", `return store.Object{}`, "", tests("agent/controller", "TestSkipsUnreadable")},
	{"skip-hides-the-windows-of-all", "agent/controller.onLog", `return defaultName`, "", simulated(tests("agent/controller", "TestSkipWindow")...)},
	{"environment-has-the-windows-of-the-tenant", "agent/wire/v1.Environment.HasSchedule", `return false`, "", simulated(tests("agent/controller", "TestTwoEnvironments")...)},
	{"second-run-in-one-window", "agent/controller.hadRun", `return false`, "", tests("agent/controller", "TestOneRunPerWindow")},
	{"window-that-is-to-come-has-no-run", "agent/controller.edited", `return true`, "", tests("agent/controller", "TestEditOfAnOpenWindow")},
	{"window-that-is-added-has-no-run", "agent/controller.edited", `return false`, "", tests("agent/controller", "TestWindowsThatHadNoRun|TestEditOfAnOpenWindow")},
	{"run-that-touched-no-host-uses-its-window", "agent/run.State.UsesWindow", `return true`, "", tests("agent/controller", "TestRetryInTheWindow")},
	{"window-is-tried-again-though-a-host-was-touched", "agent/run.State.UsesWindow", `return false`, "", simulated(tests("agent/controller", "TestRetryInTheWindow")...)},

	// 10, 11. A host is a member of one run under way at most, and in the roster of one
	// environment; the runs of environments do not see each other.
	{"gate-hands-out-the-newest-prepare", "agent/log/gate.cache.of", `var newest *prepared; for _, run := range $0.runs { if newest == nil || run.record.Seq > newest.record.Seq { newest = run } }; return newest`, "", tests("agent/log/gate", "TestEnvironments|TestRepliesOfEnvironments")},
	{"unknown-run-is-folded-into-default", "agent/run.Ledger.whose", `e := $0.byRun[$1.Run]; if $1.Kind == message.CommandAll { e = $0.environments[$1.Environment] }; if e == nil { e = $0.Of("") }; if e.newest == nil { return nil, fmt.Errorf("none") }; return e, nil`, "", tests("agent/run", "TestUnknownRun")},
	{"clock-set-back-is-seen-by-one-run-only", "agent/run.Ledger.follow", `if $1.Before($0.time) && len($0.underWay) > 0 { $0.underWay[0].newest.setBack($0.time, $1) }; $0.time = $1`, "", tests("agent/run", "TestClockSetBackForAll")},
	{"host-that-moves-is-in-two-rosters", "agent/run.State.letGo", `return false`, "", tests("agent/run", "TestHostMoves")},
	{"host-is-a-member-of-two-runs", "agent/run.Ledger.MemberOf", `return nil`, "", tests("agent/run", "TestMemberOfAnotherRun")},
	{"answer-is-lost-while-a-run-is-opened", "agent/run.Ledger.settled", `return $1`, "", tests("agent/run", "TestAnsweredWhileOpening")},
	{"environments-are-asked-in-no-turn", "agent/run.Environment.Turn", `return 0`, "", tests("agent/run", "TestTurns|TestFairness")},
	{"run-of-one-environment-holds-the-others", "agent/controller.state.next", `wait := zero1; if under := $0.ledger.UnderWay(); len(under) > 0 && under[0].Name != $1.name && $1.ledger.Current() != nil { wait.Until = $2.Add(time.Minute); return wait, nil }; q := $0.nextRequest($1); next := $1.ledger.Next($2, $0.seen($1, $2, q)); if next.Act == run.Refuse { q.refused = next.Refused; wait.Until = $2; return wait, nil }; return next, q`, "", simulated(tests("agent/controller", "TestTwoEnvironments")...)},
	{"reply-counts-for-another-run", "agent/run.Ledger.whose", `if $1.Kind == message.ReplyRecord && len($0.underWay) > 0 { return $0.underWay[0], nil }; e := $0.byRun[$1.Run]; if $1.Kind == message.CommandAll { e = $0.environments[$1.Environment] }; if e == nil || e.newest == nil { return nil, fmt.Errorf("none") }; return e, nil`, "", append(tests("agent/run", "TestSideBySide"), sideBySide)},
	{"abort-is-of-all-runs", "agent/run.Ledger.whose", `if a, is := $1.Event.(message.Aborted); is { for _, e := range $0.underWay { if e.newest.ID != $1.Run { _ = e.newest.abort(a, $1.Time) } } }; e := $0.byRun[$1.Run]; if $1.Kind == message.CommandAll { e = $0.environments[$1.Environment] }; if e == nil || e.newest == nil { return nil, fmt.Errorf("none") }; return e, nil`, "", append(tests("agent/run", "TestSideBySide"), sideBySide, independent)},
	{"outcome-is-dropped-by-another-run", "agent/controller.state.report", `$0.standard().tasks.report($2, false); return`, "", tests("agent/controller", "TestOutcomeOfAnotherRun")},
	{"request-is-of-the-newest-run", "agent/controller.state.about", `return $0.environment($0.ledger.UnderWay()[len($0.ledger.UnderWay())-1].Name), nil`, "", tests("agent/controller", "TestTwoEnvironments")},
	{"start-is-of-the-first-environment", "agent/controller.state.onlyWithHosts", `for _, env := range $0.inOrder { if len($0.fleet(env, $0.only($1, nil))) > 0 { return env, nil } }; return $0.standard(), nil`, "", tests("agent/controller", "TestStartsChooseTheirEnvironment")},
	{"printed-command-names-no-environment", "agent/controller.state.inCommand", `return ""`, "", append(tests("agent/controller", "TestRequestsNameTheirRun"), tests("agent/cli", "TestPrintedCommandsWork")...)},
	{"abort-of-all-names-no-environment", "agent/controller.Controller.abortOne", `$3.Environment = ""; return $0.Ask($1, $2, run.Abort, $3)`, "", tests("agent/controller", "TestAbortAll")},
	{"record-wakes-nobody", "agent/controller.state.touched", `for _, of := range $0.ledger.Touched() { $0.environment(of.Name).ledger = of }; return`, "", tests("agent/controller", "TestTwoEnvironments")},
	{"host-is-upgraded-by-two-environments", "agent/controller.state.isElsewhere", `return false`, "", tests("agent/controller", "TestMove")},
	{"contested-host-is-of-the-first", "agent/run/plan.Membership.Of", `if all := $0.matching($1); len(all) > 0 { return Place{Environment: all[0]} }; return Place{}`, "", append(tests("agent/run/plan", "TestMembership"), tests("agent/controller", "TestContestedHost")...)},
	{"moved-host-goes-by-its-match", "agent/run/plan.Membership.has", `return false`, "", tests("agent/controller", "TestAssigned")},
	{"assignment-outlives-its-environment", "agent/controller.state.unassign", `return false`, "", tests("agent/controller", "TestAssignedToNone")},
	{"environment-in-use-is-deleted", "agent/controller.state.vacant", `return nil`, "", tests("agent/controller", "TestVacant")},

	// 12. An environment follows completed runs of those that it comes after.
	{"run-that-failed-is-followed", "agent/run.Environment.complete", `$0.completed = append(slices.Clip($0.completed), message.Completion{Run: $1.Key(), At: $1.EndedAt}); return`, "", tests("agent/run", "TestOrder")},
	{"soak-of-an-environment-is-ignored", "agent/run.Ledger.Standing", `var s Standing; for _, name := range $2.Environments { if all := $0.Of(name).completed; len(all) > 0 && all[len(all)-1].Run > $0.Of($1).followed(name) { s.Follows = append(s.Follows, message.Follow{Environment: name, Run: all[len(all)-1].Run}) } else { s.Waits = "a run" } }; return s`, "", simulated(append(tests("agent/controller", "TestAfter"), tests("agent/run", "TestOrder")...)...)},
	{"order-of-environments-is-not-asked-for", "agent/controller.state.standing", `return zero1`, "", simulated(tests("agent/controller", "TestAfter")...)},

	// 13. A step begins after all hosts before it, ends before any host after it, and counts as done only
	// if it was done.
	{"hosts-do-not-wait-for-a-step", "agent/run.State.begun", `g := $0.stages.current(); g.doing.Host = $1.Host; $0.stageBegins(g, $2); $0.touched, $0.changed = true, $2; $0.passStep($2); return nil`, "", simulated(scripts, invariants)},
	{"step-that-failed-counts-as-done", "agent/run.State.stepRan", `g := $0.stages.current(); g.doing.Since = time.Time{}; g.doing.Attempt++; $0.counts.underWay--; $0.changed = $2; $0.passStep($2); return nil`, "", simulated(scripts, invariants)},
	{"step-is-done-though-nobody-says-so", "agent/run.State.stepOverdue", `t, underWay := $0.stepTask(); if !underWay { return zero1, time.Time{} }; if ends := $0.stepEnds(t); $1.Before(ends) { return zero1, ends }; return message.Ran{Outcome: t.Outcome(true, "")}, time.Time{}`, "", simulated()},
	{"step-is-undone-in-place-of-done", "agent/run.State.stepTask", `if $0.Over() || len($0.stages.list) == 0 || !$0.stages.current().doing.underWay() { return zero1, false }; g := $0.stages.current(); hook := g.Step.Do; if g.Step.Undo != nil { hook = g.Step.Undo }; return message.Task{Run: $0.ID, Kind: message.Step, Stage: g.Name, Host: g.doing.Host, Attempt: g.doing.Attempt, Hook: hook, Gives: g.Step.Gives}, true`, "", simulated()},

	{"step-begins-without-time", "agent/run.State.needs", `return 0`, "", []suite{scripts}},
	{"there-is-always-a-way-back", "agent/run.State.WayBack", `return zero1`, "", []suite{scripts}},
	{"any-host-does-a-step", "agent/run/plan.HostOf", `for _, h := range $2 { return h.Name, true }; return "", false`, "", tests("agent/run/plan", "TestHostOf")},
	{"worker-that-knows-no-steps-is-asked", "agent/controller.state.stepHost", `return func(step *rollout.Step) string { host, _ := plan.HostOf(step, $0.fleet($1, nil)); return host }`, "", tests("agent/controller", "TestSteps")},
	{"outputs-are-not-sealed", "agent/controller.dispatching.seal", `body, err := json.Marshal($2); return &message.Outputs{Names: slices.Sorted(maps.Keys($2)), Sealed: string(body)}, err`, "", tests("agent/controller", "TestSteps")},
	{"outputs-that-are-missing-are-no-failure", "agent/wire/message.CheckOutputs", `return nil`, "", append(tests("agent/controller", "TestOutputsThatAreNotKept"), tests("agent/host/check", "TestOutputs")...)},
	{"outputs-stay-on-the-disk", "agent/host/check.Runner.Clean", `return nil`, "", tests("agent/host/check", "TestOutputsOfEarlierSteps")},
	{"step-overlaps-with-the-one-before", "agent/host/worker.tasks.runs", `return false`, "", tests("agent/host/worker", "TestStepsFollowOneAnother")},

	// What runs and steps ask of hosts and of the site.
	{"task-is-of-any-host", "agent/wire/message.TaskKind.mayBeOf", `return true`, "", tests("agent/wire/message", "TestTasksOfAStep")},
	{"checks-of-hosts-are-asked-at-the-site", "agent/wire/message.Task.OnSite", `return true`, "", tests("agent/wire/message", "TestTaskKinds")},
	{"step-check-believes-scripts", "agent/host/stepcheck.checker.leadsTo", `return nil`, "", tests("agent/host/stepcheck", "TestFaultsAreFound")},
	{"step-check-kills-nothing", "agent/host/stepcheck.checker.killed", `return nil`, "", tests("agent/host/stepcheck", "TestFaultsAreFound")},

	// 14. A run prepares no host before all its start checks have passed.
	{"run-begins-though-its-start-checks-failed", "agent/run.startChecks.why", `return ""`, "", simulated(scripts, invariants)},
	{"start-checks-are-not-asked", "agent/run.newStartChecks", `return zero1`, "", simulated(scripts, invariants)},
}
