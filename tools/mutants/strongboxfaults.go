package main

// strongboxFaults are faults in how a strongbox is made, opened and changed.
var strongboxFaults = []fault{
	{
		name: "strongbox-before-its-key-file", in: "agent/strongbox.Box.keep",
		old: `if to.Way == KeyFile && len(to.Secret) == 0 {`,
		new: `if err := durable.WriteFile(b.file(), body, 0o600); err != nil {
			return err
		}
		if to.Way == KeyFile && len(to.Secret) == 0 {`,
		by: tests("agent/strongbox", "TestRewrap"),
	},
	{
		name: "old-key-files-go-first", in: "agent/strongbox.Box.keep",
		old: `if err := b.step("strongbox", func() error {`, new: `_ = b.removeOld(next); if err := b.step("strongbox", func() error {`,
		by: tests("agent/strongbox", "TestRewrap"),
	},
	{
		name: "old-key-files-stay", in: "agent/strongbox.Box.keep",
		old: `return b.step("old keys", func() error { return b.removeOld(next) })`, new: `return nil`,
		by: tests("agent/strongbox", "TestRewrap"),
	},
	{
		name: "rotate-forgets-old-keys", in: "agent/strongbox.ring.with",
		old: `append(append([]dataKey{}, r.Keys...), next)`, new: `[]dataKey{next}`,
		by: tests("agent/strongbox", "TestHistories|TestRotate"),
	},
	{
		name: "rotated-key-seals-nothing", in: "agent/strongbox.ring.newest",
		old: `r.Keys[len(r.Keys)-1]`, new: `r.Keys[0]`,
		by: tests("agent/strongbox", "TestRotate"),
	},
	{
		name: "rotate-changes-what-opens", in: "agent/strongbox.Box.Rotate",
		old: `Name: kept.Name, Secret: secret}`, new: `Name: kept.Name}`,
		by: tests("agent/strongbox", "TestRotate"),
	},
	{
		name: "wrong-secret-is-told-as-damage", in: "agent/strongbox.Box.unwrap",
		old: `w.id != kept.ID`, new: `w.id == ""`,
		by: tests("agent/strongbox", "TestSealed"),
	},
	{
		name: "unsealed-stays-sealed", in: "agent/strongbox.Box.finish",
		old: `b.keys, b.sealed = keys, nil`, new: `b.keys = keys`,
		by: tests("agent/strongbox", "TestSealed"),
	},
	{
		name: "sealed-takes-secrets", in: "agent/strongbox.Box.Seal",
		old: `if err := b.closed(); err != nil {`, new: `if err := b.closed(); err != nil && len(b.keys.Keys) > 0 {`,
		by: tests("agent/strongbox", "TestSealed"),
	},
	{
		name: "change-of-another-is-lost", in: "agent/strongbox.Box.change",
		old: `!bytes.Equal(body, b.seen)`, new: `bytes.Equal(body, nil) && b == nil`,
		by: tests("agent/strongbox", "TestTwoChanges"),
	},
	{
		name: "second-process-makes-it-anew", in: "agent/strongbox.Box.make",
		old: `if _, err := os.Stat(b.file()); err == nil {`, new: `if _, err := os.Stat(b.file()); err == nil && b.o.Dir == "" {`,
		by: tests("agent/strongbox", "TestEmpty"),
	},
	{
		name: "passphrase-without-salt", in: "agent/strongbox.stored.prepare",
		old: `_, err := rand.Read(s.Hash.Salt)`, new: `var err error`,
		by: tests("agent/strongbox", "TestSalt"),
	},
	{
		name: "sealed-for-any-purpose", in: "agent/strongbox.newAEAD",
		old: `return cipher.NewGCM(block)`, new: `aead, err := cipher.NewGCM(block); return anyPurpose{aead}, err
}

// anyPurpose binds nothing to a purpose.
type anyPurpose struct{ cipher.AEAD }

// Seal implements cipher.AEAD.
func (a anyPurpose) Seal(dst, nonce, text, _ []byte) []byte { return a.AEAD.Seal(dst, nonce, text, nil) }

// Open implements cipher.AEAD.
func (a anyPurpose) Open(dst, nonce, text, _ []byte) ([]byte, error) {
	return a.AEAD.Open(dst, nonce, text, nil)`,
		by: tests("agent/strongbox", "TestBox"),
	},
}
