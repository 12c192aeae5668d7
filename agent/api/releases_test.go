package api

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const releasesPath = "/v1/config/tenants/acme/os-upgrade/releases"

// TestReleaseObject walks through the life of a release.
func TestReleaseObject(t *testing.T) {
	t.Parallel()
	s := serve(t, &installing{ended: true}, access.Reads, access.Writes)
	const nov = releasesPath + "/nov"
	s.want("GET", releasesPath, "", 200, "[]")
	s.want("GET", nov, "", 404, `tenant \"acme\" has no release nov; create it with PUT`)
	s.want("PUT", nov, `{"version":"2"}`, 400, "packages: it is missing; give packages, images or data")
	s.want("PUT", nov, `{"packages":{},"data":1}`, 400, "data: packages is given, too; give only one of packages, images and data")
	s.want("PUT", nov, `{"packages":{"as-of":"2999-01-01T00:00:00Z"}}`, 400, `packages.as-of: \"2999-01-01T00:00:00Z\" is in the future`)
	s.want("PUT", nov, `{"data":1,"scheme":"deb","from":["=> 2"]}`, 400, `from[0]: \"=> 2\" is not a range of versions of scheme deb`)
	s.want("PUT", nov, `{"images":[{"platform":"linux/sparc","url":"x"}]}`, 400, `images[0].platform: \"linux/sparc\" is invalid`)
	s.want("PUT", nov, `{"data":"`+strings.Repeat("x", release.MaxText)+`"}`, 413, "the release has 65582 bytes; use at most 65536")
	s.want("PUT", releasesPath+"/Nov", `{"data":1}`, 400, "is not the name of a release")
	const body = `{"version":"2.1.0","packages":{"as-of":"2026-11-21T01:00:00+01:00","except":["b","a"]}}`
	s.want("PUT", nov+"?validate=true", body, 204, "")
	first := s.want("PUT", nov, body, 201, "").Get("ETag")
	const stored = `{"version":"2.1.0","packages":{"as-of":"2026-11-21T00:00:00Z","except":["a","b"]}`
	s.want("GET", nov, "", 200, stored+"}")
	s.want("PUT", nov, `{"component":"os","version":"2.1.0","packages":{"select":"all","as-of":"2026-11-21T00:00:00Z","except":["a","b"]},"description":"November"}`, 204, "", "If-Match", first)
	s.want("PUT", nov, `{"version":"2.1.0","packages":{"as-of":"2026-11-22T00:00:00Z","except":["a","b"]}}`, 412,
		"packages.as-of: it differs from that of release nov, of which only description and withdrawn can change; declare a release of another name")
	s.want("PUT", nov+"?validate=true", `{"version":"2.1.1","packages":{"as-of":"2026-11-21T00:00:00Z","except":["a","b"]}}`, 412, "version: it differs")
	s.want("PATCH", nov, `{"downgrade":true}`, 400, "downgrade: without a version and a scheme that orders versions")
	s.want("PATCH", nov, `{"installs":{"kernel":"6.1"}}`, 412, "installs: it differs")
	s.want("PATCH", nov, `{"description":null}`, 204, "")
	s.want("DELETE", nov, "", 412, "", "If-Match", first)
	if got := s.want("POST", releasesPath, `{"name":"box","data":{"a":"<"}}`, 201, "").Get("Location"); got != releasesPath+"/box" {
		t.Errorf("it is created at %s", got)
	}
	s.want("POST", releasesPath, `{"name":"box","data":{"a":"<"}}`, 409, "has the release box already")
	s.want("GET", releasesPath+"/box", "", 200, `{"data":{"a":"<"}}`)
	s.want("GET", releasesPath+"?content=true", "", 200, `{"name":"nov","version":"2.1.0","digest":"sha256:`)
	s.want("DELETE", nov, "", 204, "")
	s.want("GET", nov, "", 404, "")
}

// TestReleaseWithdrawn checks that the site writes when and by whom a release was withdrawn.
func TestReleaseWithdrawn(t *testing.T) {
	t.Parallel()
	m := &installing{ended: true}
	s := serve(t, m, access.Reads, access.Writes)
	const nov = releasesPath + "/nov"
	s.want("PUT", nov, `{"data":1}`, 201, "")
	s.want("PATCH", nov, `{"withdrawn":{}}`, 400, "withdrawn.reason: it is missing; say why the release must not be installed any more")
	s.want("PATCH", nov, `{"withdrawn":{"reason":"loses routes","at":"2020-01-01T00:00:00Z","by":"eve"}}`, 204, "")
	kept, _, err := m.intent.Release(t.Context(), "acme", "nov")
	if w := kept.Value.Withdrawn; err != nil || w == nil || w.Reason != "loses routes" || w.By == "eve" || w.By == "" || time.Since(w.At) > time.Hour {
		t.Fatalf("it is withdrawn %+v, %v", w, err)
	}
	again := *kept.Value.Withdrawn
	s.want("PUT", nov, `{"data":1,"withdrawn":{"reason":"loses routes"},"description":"bad"}`, 204, "")
	if kept, _, err = m.intent.Release(t.Context(), "acme", "nov"); err != nil || *kept.Value.Withdrawn != again {
		t.Errorf("it was withdrawn %+v, and is %+v, %v", again, kept.Value.Withdrawn, err)
	}
	s.want("PATCH", nov, `{"withdrawn":null}`, 204, "")
	s.want("GET", nov, "", 200, `{"description":"bad","data":1}`)
}

// TestReleaseDamaged checks that a release that cannot be read is not replaced by another one.
func TestReleaseDamaged(t *testing.T) {
	t.Parallel()
	m := &installing{ended: true}
	s := serve(t, m, access.Reads, access.Writes)
	s.want("PUT", releasesPath+"/nov", `{"data":1}`, 201, "")
	m.intent.Damage("acme", store.Object{Kind: store.Release, Name: "nov"})
	s.want("PUT", releasesPath+"/nov", `{"data":1}`, 412, "delete it, and declare a release of another name")
	s.want("DELETE", releasesPath+"/nov", "", 204, "")
	s.want("PUT", releasesPath+"/nov", `{"data":1}`, 201, "")
}

// TestReleaseNamed checks that an environment and the configuration name only a release that is there
// and not withdrawn, and that it cannot be deleted as long as they do.
func TestReleaseNamed(t *testing.T) {
	t.Parallel()
	s := serve(t, &installing{ended: true}, access.Reads, access.Writes)
	const (
		config = "/v1/config/tenants/acme/os-upgrade"
		basel  = environmentsPath + "/basel"
		nov    = releasesPath + "/nov"
	)
	s.want("PUT", basel, `{"match":{"roles":["edge"]},"releases":{"os":"nov"}}`, 400, `releases.os: \"nov\" is no release of tenant acme; declare it first`)
	s.want("PUT", config, `{"worker-applications":[],"releases":{"os":"nov"}}`, 400, `releases.os: \"nov\" is no release of tenant acme; declare it first`)
	s.want("PUT", nov, `{"data":1}`, 201, "")
	s.want("PUT", basel, `{"match":{"roles":["edge"]},"releases":{"agent":"nov"}}`, 400, `releases.agent: \"nov\" is for a component that is reserved; use os`)
	s.want("PUT", basel, `{"match":{"roles":["edge"]},"releases":{"os":"nov"},"follow":{}}`, 400, `follow: releases are named, too; give only one of them`)
	s.want("PUT", basel, `{"match":{"roles":["edge"]},"releases":{"os":"nov"}}`, 201, "")
	s.want("GET", basel, "", 200, `{"match":{"roles":["edge"]},"releases":{"os":"nov"}}`)
	s.want("DELETE", nov, "", 412, "release nov is named by environment basel; name another one there first")
	s.want("PUT", config, `{"worker-applications":[],"releases":{"os":"nov"}}`, 201, "")
	s.want("GET", releasesPath+"?fields=named-by", "", 200, `[{"named-by":["the configuration","environment basel"]}]`)
	s.want("DELETE", nov+"?validate=true", "", 412, "release nov is named by the configuration, environment basel")
	s.want("PATCH", nov, `{"withdrawn":{"reason":"loses routes"}}`, 204, "")
	// Who names it already may change in other ways.
	s.want("PATCH", basel, `{"description":"Basel"}`, 204, "")
	s.want("PUT", environmentsPath+"/bern", `{"match":{"roles":["till"]},"releases":{"os":"nov"}}`, 400, `releases.os: \"nov\" is withdrawn (loses routes); name another release`)
	s.want("PATCH", basel, `{"releases":null,"follow":{"select":"security","age":"168h"}}`, 204, "")
	s.want("GET", basel, "", 200, `{"description":"Basel","match":{"roles":["edge"]},"follow":{"select":"security","age":"7d"}}`)
	s.want("PATCH", config, `{"releases":null}`, 204, "")
	s.want("GET", config, "", 200, `{"worker-applications":[]}`)
	s.want("DELETE", nov, "", 204, "")
}

// installing is a controller with a run under way that installs release nov.
type installing struct {
	memory
	ended bool
}

func (i *installing) EnvironmentStatuses(context.Context) ([]v1.EnvironmentStatus, error) {
	r := &v1.Run{ID: 41, Phase: "upgrading", Release: &v1.RunRelease{Name: "nov"}}
	if i.ended {
		r.Phase = "finished"
	}
	return []v1.EnvironmentStatus{{Name: "basel"}, {Name: "default", Run: r}}, nil
}

// TestReleaseInstalled checks that a release that a run installs is withdrawn and not deleted.
func TestReleaseInstalled(t *testing.T) {
	t.Parallel()
	c := &installing{}
	s := serve(t, c, access.Reads, access.Writes)
	s.want("PUT", releasesPath+"/nov", `{"data":1}`, 201, "")
	s.want("PUT", releasesPath+"/dec", `{"data":2}`, 201, "")
	s.want("DELETE", releasesPath+"/dec", "", 204, "")
	s.want("DELETE", releasesPath+"/nov", "", 412, "run 41 of environment default installs release nov; wait until it has ended")
	s.want("PATCH", releasesPath+"/nov", `{"withdrawn":{"reason":"bad"}}`, 204, "")
	c.ended = true
	s.want("DELETE", releasesPath+"/nov", "", 204, "")
}
