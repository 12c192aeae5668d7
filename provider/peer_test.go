package provider_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/list"
	framework "github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/config"
)

// peer is a provider that the figures compare ours with: the same schema, served as most
// providers are, and reads that do nothing.
type peer struct{ provider.Osupgrade }

var _ framework.Provider = (*peer)(nil)

func (*peer) Configure(context.Context, framework.ConfigureRequest, *framework.ConfigureResponse) {}

func (*peer) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return &peerConfig{} }}
}

func (*peer) DataSources(context.Context) []func() datasource.DataSource { return nil }

// ListResources implements framework.ProviderWithListResources: a list needs its resource.
func (*peer) ListResources(context.Context) []func() list.ListResource { return nil }

type peerConfig struct{}

func (*peerConfig) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = config.TypeName
}

func (*peerConfig) Schema(ctx context.Context, req resource.SchemaRequest, resp *resource.SchemaResponse) {
	config.New().Schema(ctx, req, resp)
}

func (*peerConfig) Create(_ context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	resp.State.Raw = req.Plan.Raw
}

func (*peerConfig) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

func (*peerConfig) Update(_ context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

func (*peerConfig) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

// peerVariable makes the program of these tests the peer.
const peerVariable = "OSUPGRADE_TEST_PEER"

func servePeer() {
	err := providerserver.Serve(context.Background(), func() framework.Provider { return &peer{} }, providerserver.ServeOpts{Address: acctest.Source})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// newPeerWorkspace returns a workspace with the peer in the place of our provider.
func newPeerWorkspace(b *testing.B, env ...string) *acctest.Workspace {
	b.Helper()
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	folder := b.TempDir()
	if err := os.Symlink(program, filepath.Join(folder, filepath.Base(acctest.Binary(b)))); err != nil {
		b.Fatal(err)
	}
	return acctest.NewWorkspaceOf(b, folder, append(env, peerVariable+"=1")...)
}
