package provider

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// NewServer returns a constructor for the provider in a given version as a server of the
// plugin protocol.
func NewServer(version string) func() tfprotov6.ProviderServer {
	return func() tfprotov6.ProviderServer { return lend(providerserver.NewProtocol6(New(version)())()) }
}

// framework is what the framework's server implements.
type framework interface {
	tfprotov6.ProviderServer
	tfprotov6.ActionServer
	tfprotov6.ListResourceServer
}

// lender is the framework's server, to which the context of a call is lent for as long as
// the call takes. The framework keeps the context of each call, to cancel it when Terraform
// stops the provider, and never forgets one: with each stay its loggers and its stream, which
// were 60 MB after a plan of 1,000 resources.
//
// Calls of which a plan makes many are lent one. The others are few, and those that answer
// with a stream need their context for longer.
type lender struct{ framework }

// lend returns a lender of a server of the framework; another server stays as it is.
func lend(server tfprotov6.ProviderServer) tfprotov6.ProviderServer {
	if f, ok := server.(framework); ok {
		return lender{f}
	}
	return server
}

// ValidateResourceConfig implements tfprotov6.ProviderServer.
func (l lender) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return lent(ctx, req, l.framework.ValidateResourceConfig)
}

// UpgradeResourceState implements tfprotov6.ProviderServer.
func (l lender) UpgradeResourceState(ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	return lent(ctx, req, l.framework.UpgradeResourceState)
}

// UpgradeResourceIdentity implements tfprotov6.ProviderServer.
func (l lender) UpgradeResourceIdentity(ctx context.Context, req *tfprotov6.UpgradeResourceIdentityRequest) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	return lent(ctx, req, l.framework.UpgradeResourceIdentity)
}

// ReadResource implements tfprotov6.ProviderServer.
func (l lender) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return lent(ctx, req, l.framework.ReadResource)
}

// PlanResourceChange implements tfprotov6.ProviderServer.
func (l lender) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	return lent(ctx, req, l.framework.PlanResourceChange)
}

// ApplyResourceChange implements tfprotov6.ProviderServer.
func (l lender) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return lent(ctx, req, l.framework.ApplyResourceChange)
}

// ImportResourceState implements tfprotov6.ProviderServer.
func (l lender) ImportResourceState(ctx context.Context, req *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	return lent(ctx, req, l.framework.ImportResourceState)
}

// ValidateDataResourceConfig implements tfprotov6.ProviderServer.
func (l lender) ValidateDataResourceConfig(ctx context.Context, req *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return lent(ctx, req, l.framework.ValidateDataResourceConfig)
}

// ReadDataSource implements tfprotov6.ProviderServer.
func (l lender) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	return lent(ctx, req, l.framework.ReadDataSource)
}

// CallFunction implements tfprotov6.ProviderServer.
func (l lender) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	return lent(ctx, req, l.framework.CallFunction)
}

// lent makes a call with a context that is taken back when the call has ended.
func lent[Q, A any](ctx context.Context, req Q, call func(context.Context, Q) (A, error)) (A, error) {
	loan := &loan{}
	loan.of.Store(&ctx)
	defer loan.of.Store(nil)
	return call(loan, req)
}

// loan is a context until it is taken back, and from then on one that has ended.
type loan struct {
	of atomic.Pointer[context.Context]
}

// ended is a context that has ended.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (l *loan) context() context.Context {
	if of := l.of.Load(); of != nil {
		return *of
	}
	return ended
}

// Deadline implements context.Context.
func (l *loan) Deadline() (time.Time, bool) { return l.context().Deadline() }

// Done implements context.Context.
func (l *loan) Done() <-chan struct{} { return l.context().Done() }

// Err implements context.Context.
func (l *loan) Err() error { return l.context().Err() }

// Value implements context.Context.
func (l *loan) Value(key any) any { return l.context().Value(key) }
