package main

// siteFaults are faults of the controller, the store and the API.
var siteFaults = []fault{
	{
		name: "controller-appends-though-it-is-behind", in: "agent/controller.appender.append",
		old: `seq, err := a.write(ctx, e, after)`,
		new: `seq, err := a.write(ctx, e, after)
	for n := uint64(1); n < 1000 && errors.Is(err, log.ErrBehind); n++ {
		seq, err = a.log.Append(ctx, e.Record, after.LastCommand+n)
	}`,
		by: simulated(),
	},
	{
		name: "controller-does-not-read-what-it-appended", in: "agent/controller.appender.append",
		old: `seq, err := a.write(ctx, e, after)
	if err == nil {
		a.at("after " + e.label)
		a.last = seq`,
		new: `seq, err := a.log.Append(ctx, e.Record, max(after.LastCommand, a.last))
	if err == nil {
		a.at("after " + e.label)
		a.last, after.LastSeq = seq, seq`,
		by: simulated(),
	},
	{
		name: "run-is-opened-before-an-answer-is-seen", in: "agent/controller.appender.write",
		old: `if e.afterAll {`, new: `if e.afterAll && after.LastSeq == 0 {`,
		by: tests("agent/controller", "TestOpeningBehindAnAnswer"),
	},
	{
		name: "controller-decides-at-half-the-log", in: "agent/controller.state.decide",
		old: `if !s.active || !s.isLoaded || s.ready() != nil {`, new: `if s.alarm != nil {`,
		by: tests("agent/controller", "TestAbortAfterARestart|TestTaskAfterARestart"),
	},
	{
		name: "controller-starts-before-it-knows-who-is-silent", in: "agent/controller.state.judgeAt",
		old: `if !s.hasGathered(current, now) {`, new: `if !s.hasGathered(current, now) && current.ID == 0 {`,
		by: tests("agent/controller", "TestRestartDuringARun"),
	},
	{
		name: "news-beside-those-that-are-kept-are-lost-in-a-crash", in: "agent/controller.outbox.put",
		old: `asOf < b.asOf`, new: `asOf <= b.asOf`,
		by: simulated(),
	},
	{
		name: "span-ends-before-it-begins-when-the-clock-is-set-back", in: "agent/trace.Run.Record",
		old: `record.Time.After(t.now)`, new: `!record.Time.IsZero()`,
		by: tests("agent/run", "TestSpans"),
	},
	{
		name: "spans-of-a-run-are-lost-in-a-crash", in: "agent/controller.traces.started",
		old: `!newest.Over() || now`, new: `newest.Over() && now`,
		by: tests("agent/controller", "TestSpansAcrossRestarts"),
	},
	{
		name: "collector-that-is-away-fills-memory", in: "agent/trace/otlp.Exporter.Put",
		old: `len(e.queue) >= maxQueue || request && e.requests >= maxRequests`, new: `request && e.requests >= maxRequests`,
		by: tests("agent/trace/otlp", "TestCollectorDown"),
	},
	{
		name: "news-of-waits-go-by-a-clock-that-is-behind", in: "agent/controller.state.decide",
		old: `s.runTime(now)`, new: `now`,
		by: tests("agent/controller", "TestNewsByAClockThatIsBehind"),
	},
	{
		name: "controller-decides-by-the-time-before-it-asked-the-log", in: "agent/controller.state.decide",
		old: `if s.isLoaded {
		s.compareWitnesses(ctx)
	}
	now := s.Now()`,
		new: `now := s.Now()
	if s.isLoaded {
		s.compareWitnesses(ctx)
	}`,
		by: tests("agent/controller", "TestLogHangsWhileItIsCompared"),
	},
	{
		name: "silence-is-not-told-to-the-run", in: "agent/run.State.tellPresence",
		old: `if hosts := news(seen.Silent, true); len(hosts) > 0 {`, new: `if hosts := news(seen.Silent, true); len(hosts) > len(seen.Silent) {`,
		by: tests("agent/controller", "TestSilenceDuringARun"),
	},
	{
		name: "alarm-does-not-stop-the-controller", in: "agent/controller.state.ready",
		old: `case s.alarm != nil:`, new: `case s.alarm != nil && s.ledger.LastSeq == 0:`,
		by: tests("agent/controller", "TestLogThatWentBackwards|TestAsksAtAnAlarm|TestAlarmIsShown|TestAlarmWithoutARun"),
	},
	{
		name: "freeze-at-a-start-is-ignored", in: "agent/controller.state.frozen",
		old: `case found && freeze.Contains(now):`, new: `case found && freeze.Contains(now) && s.intent.config == nil:`,
		by: tests("agent/controller", "TestFreezeWins"),
	},
	{
		name: "freeze-during-a-run-is-ignored", in: "agent/run.State.tellFreeze",
		old: `!seen.Freeze.NotAfter.Before(s.NotAfter)`, new: `!seen.Freeze.NotAfter.Before(s.OpenedAt)`,
		by: simulated(tests("agent/controller", "TestFreezeDuringARun")...),
	},
	{
		name: "unreadable-calendar-is-ignored", in: "agent/controller.intent.reschedule",
		old: `if i.unreadable() != nil || i.config == nil {`, new: `if i.unusable[theConfig] != nil || i.config == nil {`,
		by: tests("agent/controller", "TestUnreadableCalendar"),
	},
	{
		name: "window-after-the-first-has-no-run", in: "agent/controller.hadRun",
		old: `case !m.last.Before(m.span.Start):`, new: `case !m.last.IsZero():`,
		by: simulated(tests("agent/controller", "TestDue")...),
	},
	{
		name: "second-run-in-one-window", in: "agent/controller.hadRun",
		old: `case !m.last.Before(m.span.Start):
		return true`,
		new: `case !m.last.Before(m.span.Start):
		return m.last.After(m.span.Start)`,
		by: tests("agent/controller", "TestOneRunPerWindow"),
	},
	{
		name: "host-answers-for-the-site", in: "agent/controller.dispatcher.report",
		old: `now.key != o.Key() || now.onSite != fromSite {`, new: `now.key != o.Key() {`,
		by: tests("agent/controller", "TestSiteTask"),
	},
	{
		name: "run-is-lost-to-the-history", in: "agent/controller.archiver.write",
		old: `"run", first.Key)
		if err != nil {`,
		new: `"run", first.Key)
		if err != nil && ctx.Err() != nil {`,
		by: tests("agent/controller", "TestHistoryThatCannotBeKept"),
	},
	{
		name: "log-is-trimmed-before-the-history-has-it", in: "agent/controller.archiver.complete",
		old: `!some && a.newest.Load() >= id`, new: `!some || id > 0`,
		by: tests("agent/controller", "TestTrim|TestTrimmedLog|TestHistoryThatCannotBeKept"),
	},
	{
		name: "host-is-lost-to-the-store", in: "agent/controller.hostWriter.writeFirst",
		old: `w.queue.Defer(first)`, new: `w.queue.Done(first)`,
		by: tests("agent/controller", "TestStoreFails"),
	},
	{
		name: "write-without-revision", in: "agent/store.intent.put",
		old: `i.kv.Update(ctx, k.entry(), body, base.Number)`, new: `i.kv.Put(ctx, k.entry(), body)`,
		by: tests("agent/store", "TestRolloutRevisions|TestCalendarRevisions"),
	},
	{
		name: "create-over-what-is-there", in: "agent/store.intent.put",
		old: `i.kv.Create(ctx, k.entry(), body)`, new: `i.kv.Put(ctx, k.entry(), body)`,
		by: tests("agent/store", "TestRolloutRevisions|TestCalendarRevisions"),
	},
	{
		name: "delete-without-revision", in: "agent/store.intent.remove",
		old: `deletion, jetstream.WithExpectLastSequencePerSubject(base.Number))`, new: `deletion)`,
		by: tests("agent/store", "TestRolloutRevisions|TestCalendarRevisions"),
	},
	{
		name: "kept-run-is-overwritten", in: "agent/store.Store.writeRun",
		old: `jetstream.WithExpectLastSequencePerSubject(base)`, new: `jetstream.WithRetryAttempts(0)`,
		by: tests("agent/store", "TestHistory"),
	},
	{
		name: "if-match-is-ignored", in: "agent/api.precondition",
		old: `len(match) > 0 && !lists(match, exists, tag) {`, new: `len(match) > 0 && !exists {`,
		by: tests("agent/api", "TestPrecondition|TestConfigObject|TestRolloutObject"),
	},
	{
		name: "if-none-match-is-ignored", in: "agent/api.precondition",
		old: `len(none) > 0 && lists(none, exists, tag) {`, new: `len(none) > 0 && !exists {`,
		by: tests("agent/api", "TestPrecondition|TestConfigObject|TestRolloutObject"),
	},
	{
		name: "patch-is-not-based-on-what-it-merges", in: "agent/api.object.write",
		old: `errors.Is(err, store.ErrConflict) && !conditional(c.Header) && try < maxTries {`,
		new: `errors.Is(err, store.ErrConflict) && try < maxTries {`,
		by:  tests("agent/api", "TestPatchIsBasedOnWhatItMerges"),
	},
	{
		name: "right-of-a-token-is-not-checked", in: "agent/access.Decide",
		old: `allows(everybody, operation, segments) || who.allowed(operation, segments)`, new: `operation != "" && len(who.Roles) > 0`,
		by: tests("agent/access", "TestDecide"),
	},
	{
		name: "tenant-of-a-token-is-not-checked", in: "agent/access.Decide",
		old: `tenant != "" && who.Tenant != AnyTenant && who.Tenant != tenant`, new: `who.Tenant == ""`,
		by: tests("agent/access", "TestDecide|TestForeign"),
	},
	{
		name: "site-is-open-to-tokens-of-a-tenant", in: "agent/access.Decide",
		old: `tenant == "" && who.Tenant != AnyTenant`, new: `who.Tenant == ""`,
		by: tests("agent/access", "TestDecide"),
	},
	{
		name: "rejection-does-not-count", in: "agent/access.allows",
		old: `most, verdict = pattern, !rejected`, new: `most, verdict = pattern, true`,
		by: tests("agent/access", "TestDecide|TestAllows"),
	},
	{
		name: "certificate-of-a-server-is-that-of-a-user", in: "agent/certificate.Authorities.Verify",
		old: `!slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth)`, new: `slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageOCSPSigning)`,
		by: tests("agent/certificate", "TestVerify"),
	},
	{
		name: "revoked-certificate-is-good", in: "agent/certificate.trust.revokedOn",
		old: `; revoked {`, new: `; revoked && at.IsZero() {`,
		by: tests("agent/certificate", "TestRevoked"),
	},
	{
		name: "tenant-of-a-certificate-is-a-path", in: "agent/principal.Users.Certified",
		old: `tenant == access.AnyTenant || names.Valid(tenant)`, new: `tenant == access.AnyTenant || names.Valid(name)`,
		by: tests("agent/principal", "TestCertified"),
	},
	{
		name: "certificate-stands-for-a-token-that-is-not-good", in: "agent/api.server.certified",
		old: `r.Header.Get("Authorization") != ""`, new: `r.Header.Get("Authorization") == "x"`,
		by: tests("agent/api", "TestTokenDecides"),
	},
	{
		name: "other-sites-use-the-certificate-of-a-browser", in: "agent/api.server.certified",
		old: `err := s.crossOrigin.Check(r); err != nil`, new: `err := s.crossOrigin.Check(r); err != nil && r.Method == ""`,
		by: tests("agent/api", "TestCertificateOfBrowser"),
	},
	{
		name: "expiry-of-a-token-is-not-checked", in: "agent/principal.Token.expired",
		old: `!now.Before(*t.Expires)`, new: `t.Expires.IsZero()`,
		by: tests("agent/principal", "TestRotate"),
	},
	{
		name: "withdrawn-token-comes-back", in: "agent/principal.Tokens.Rotate",
		old: `errors.Join(err, t.Remove(ID(text)))`, new: `err`,
		by: tests("agent/principal", "TestRotateAndRemove"),
	},
	{
		name: "secret-id-is-good-for-ever", in: "agent/principal.Approles.prove",
		old: `*secret.Left--`, new: `_ = *secret.Left`,
		by: tests("agent/principal", "TestApproleLogin|TestOneUse"),
	},
	{
		name: "login-outlives-its-password", in: "agent/principal.Logins.Current",
		old: `proof != token.Login.Proof`, new: `proof == ""`,
		by: tests("agent/principal", "TestEndOfLogins|TestApproleLogin"),
	},
	{
		name: "one-place-takes-all-turns", in: "agent/principal.hasher.queue",
		old: `h.waiting[from] >= maxWaitingEach`, new: `h.waiting[from] < 0`,
		by: tests("agent/principal", "TestWaiting"),
	},
	{
		name: "strong-token-in-a-url", in: "agent/api.server.proof",
		old: `inURL && !token.ForURL()`, new: `inURL && token.Name == ""`,
		by: tests("agent/api", "TestCalendarToken"),
	},
}
