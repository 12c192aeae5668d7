package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fuzzed names for each decoder the fuzz target that reaches it: "Target" of its own package,
// or "package.Target". A text in parentheses says why a decoder has none.
var fuzzed = map[string]string{
	// What clients send: bodies, and what is in a URL or a header.
	"agent/v1.DecodeOSUpgrade": "FuzzOSUpgradeJSON", "agent/v1.DecodeRollout": "FuzzRolloutJSON", "agent/v1.DecodeCalendar": "FuzzCalendarJSON",
	"agent/v1.DecodeNewCalendar": "FuzzCalendarJSON", "agent/v1.DecodeStart": "FuzzStartJSON", "agent/v1.DecodeAsk": "FuzzAskJSON",
	"agent/v1.DecodeNewToken": "FuzzBodies", "agent/v1.DecodeRotation": "FuzzBodies", "agent/v1.DecodeUser": "FuzzBodies", "agent/v1.DecodeApprole": "FuzzBodies",
	"agent/v1.DecodeNewSecretID": "FuzzBodies", "agent/v1.DecodeTenant": "FuzzBodies", "agent/v1.DecodePolicy": "FuzzBodies", "agent/v1.DecodeWebhookResend": "FuzzBodies",
	"agent/v1.DecodeJoin": "FuzzBodies", "agent/v1.DecodeNewJoinToken": "FuzzBodies", "agent/v1.DecodeLogin": "FuzzBodies", "agent/v1.DecodePasswordChange": "FuzzBodies",
	"agent/v1.DecodeUnseal": "FuzzBodies", "agent/v1.DecodeApproleLogin": "FuzzBodies", "agent/v1.decode": "FuzzBodies",
	"agent/document.Parse": "FuzzJSON", "agent/document.ParseAll": "FuzzYAML", "agent/trace.Parse": "FuzzParse", "agent/join.Parse": "FuzzParse",
	"agent/api.parseFields": "FuzzFields", "agent/api.parsePosition": "FuzzRequest",
	// Files of people, and what they type.
	"agent/intent.Decode":  "FuzzDecode",
	"agent/calendar.Parse": "FuzzParseICS", "agent/calendar.parseLine": "FuzzParseICS", "agent/calendar.parseISO": "FuzzParseICS", "agent/calendar.parseBasic": "FuzzParseICS",
	"agent/calendar.parsePlain": "FuzzParseEvent", "agent/calendar.parseRule": "FuzzParseRule",
	"agent/window.Parse": "agent/v1.FuzzOSUpgradeJSON", "agent/window.ParseLength": "FuzzParseDuration", "agent/window.ParseDays": "FuzzParseDays", "agent/window.parseDay": "FuzzParseDays",
	"agent/window.ParseTimeOfDay": "FuzzParseTimeOfDay", "agent/window.ParseZone": "FuzzParseZone", "agent/window.ParseDuration": "FuzzParseDuration",
	"agent/window.ParseDurationWithin": "FuzzParseDuration",
	"agent/cli.parseLabels":            "(an argument of the person who runs the program)", "agent/cli.parseKeys": "(an argument of the person who runs the program)",
	"agent/trace/otlp.parseURL": "(a setting of the site)", "agent/worker/download.parseAddress": "(a setting of the worker)",
	// What hosts and sites tell each other.
	"agent/message.DecodeCommand": "FuzzBodies", "agent/message.DecodeReply": "FuzzBodies", "agent/message.DecodeEvent": "FuzzBodies", "agent/message.DecodeVersions": "FuzzBodies",
	"agent/message.DecodeTask": "FuzzBodies", "agent/message.DecodeOutcome": "FuzzBodies", "agent/message.DecodeAlive": "FuzzBodies", "agent/message.DecodeProgress": "FuzzBodies",
	"agent/message.DecodePlan": "FuzzBodies", "agent/message.ParseClass": "FuzzBodies", "agent/message.decoded": "FuzzBodies", "agent/message.decodePrepare": "FuzzBodies",
	"agent/message.decodeOne": "FuzzBodies", "agent/inventory.Decode": "FuzzDecode",
	// What scripts, package managers and the machine print.
	"agent/worker/strategy/exec.parseVersions": "FuzzParseVersions", "agent/worker/strategy/exec.parseVersionLines": "FuzzParseVersions",
	"agent/worker/strategy/exec.parseVersionObject": "FuzzParseVersions", "agent/worker/strategy/exec.parseLine": "FuzzParseLine",
	"agent/worker/strategy/exec.parseBoot": "FuzzParsePrinted", "agent/worker/strategy/exec.parsePlan": "FuzzParsePrinted", "agent/worker/strategy/exec.parseMissing": "FuzzParsePrinted",
	"agent/worker/strategy/apt.parseStatus": "FuzzListings", "agent/worker/strategy/apt.parseRecords": "FuzzListings", "agent/worker/strategy/apt.parseURIs": "FuzzListings",
	"agent/worker/strategy/apt.parseConffiles": "FuzzListings", "agent/worker/strategy/apt.parseSources": "FuzzListings", "agent/worker/strategy/apt.parsePolicy": "FuzzParsePolicy",
	"agent/worker/strategy/apt.parseSimulation": "FuzzParseSimulation", "agent/worker/strategy/apt.parseStatusLine": "FuzzParseStatusLine",
	"agent/worker/strategy/dnf.parseVersionlocks": "FuzzVersionlocks", "agent/worker/strategy/dnf.parseRows": "FuzzRows", "agent/worker/strategy/dnf.parseDatabase": "FuzzParseDatabase",
	"agent/worker/strategy/ostree.parseStatus": "FuzzParseStatus", "agent/worker/strategy/ostree.parseHead": "FuzzParseStatus",
	"agent/worker/strategy/ostree.parseBootcStatus": "FuzzParseJSON", "agent/worker/strategy/ostree.parseRPMStatus": "FuzzParseJSON",
	"agent/worker/strategy/simulated.parseEffects": "FuzzEffects",
	"agent/worker/osinfo.ParseRelease":             "FuzzParseRelease", "agent/worker/hardware.parseMemory": "FuzzParse", "agent/worker/hardware.parseIPv6": "FuzzParse",
	"agent/check.parseUnits": "FuzzParseUnits", "agent/worker/download.parseRange": "FuzzDecide",
	// What a server answers to a client.
	"agent/client.parseClientCertificate": "(a setting of the person who runs the program)", "agent/client.parseEndpoint": "(a setting of the person who runs the program)", "agent/client.parseToken": "FuzzNextLink",
	"provider/hosts.parseConstraints": "(a setting of the person who runs Terraform)", "provider/run.parseID": "(an argument of the person who runs Terraform)",
	// What is on the disk of the site or the worker, and its alone.
	"agent/worker.decodeJournal": "FuzzJournal", "agent/audit.decode": "FuzzDecode",
	"agent/principal.decodeToken": kept, "agent/principal.decodeUser": kept, "agent/principal.decodeApprole": kept, "agent/principal.decodeSecret": kept, "agent/principal.decodePolicy": kept,
	"agent/tenant.decode": kept, "agent/gate.decodeLease": kept, "agent/store.decodeVersions": kept, "agent/store.decodeIntent": kept, "agent/store.decodeNews": kept,
}

// kept is why the decoders of what only the site writes have no target.
const kept = "(JSON that the site alone writes, with a format number)"

// decoderName is how functions are called that read what others have written.
var decoderName = regexp.MustCompile(`^([dD]ecode|[pP]arse)([A-Z]\w*|d)?$`)

// TestDecodersAreFuzzed checks that each decoder is in the list above, and that the list names
// decoders and targets that there are.
func TestDecodersAreFuzzed(t *testing.T) {
	t.Parallel()
	decoders, targets := map[string]bool{}, map[string]bool{}
	for _, root := range []string{"agent", "provider"} {
		err := filepath.WalkDir(filepath.Join("..", root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			folder, _ := filepath.Rel("..", filepath.Dir(path))
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				switch {
				case !ok || f.Recv != nil:
				case !strings.HasSuffix(path, "_test.go"):
					if decoderName.MatchString(f.Name.Name) {
						decoders[filepath.ToSlash(folder)+"."+f.Name.Name] = true
					}
				case strings.HasPrefix(f.Name.Name, "Fuzz"):
					targets[filepath.ToSlash(folder)+"."+f.Name.Name] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for decoder := range decoders {
		if fuzzed[decoder] == "" {
			t.Errorf("%s reads what others have written: name the fuzz target that reaches it, or say why it has none", decoder)
		}
	}
	for decoder, target := range fuzzed {
		if strings.HasPrefix(target, "Fuzz") {
			target = decoder[:strings.LastIndex(decoder, ".")] + "." + target
		}
		if !decoders[decoder] || !strings.HasPrefix(target, "(") && !targets[target] {
			t.Errorf("%s is fuzzed by %s: one of them is not there", decoder, target)
		}
	}
}
