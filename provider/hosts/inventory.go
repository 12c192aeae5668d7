package hosts

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// machine is the Terraform model of an inventory.
type machine struct {
	At           types.String `tfsdk:"at"`
	Vendor       types.String `tfsdk:"vendor"`
	Product      types.String `tfsdk:"product"`
	Firmware     types.String `tfsdk:"firmware"`
	Architecture types.String `tfsdk:"architecture"`
	Kind         types.String `tfsdk:"kind"`
	Processor    types.String `tfsdk:"processor"`
	Sockets      types.Int64  `tfsdk:"sockets"`
	Cores        types.Int64  `tfsdk:"cores"`
	Threads      types.Int64  `tfsdk:"threads"`
	MemoryBytes  types.Int64  `tfsdk:"memory_bytes"`
	Disks        []disk       `tfsdk:"disks"`
	Interfaces   []network    `tfsdk:"interfaces"`
}

type disk struct {
	Name       types.String `tfsdk:"name"`
	Model      types.String `tfsdk:"model"`
	Bytes      types.Int64  `tfsdk:"bytes"`
	Rotational types.Bool   `tfsdk:"rotational"`
	Removable  types.Bool   `tfsdk:"removable"`
}

type network struct {
	Name      types.String `tfsdk:"name"`
	MAC       types.String `tfsdk:"mac"`
	Addresses []string     `tfsdk:"addresses"`
}

func machineFromAPI(v *v1.HostInventory) *machine {
	if v == nil {
		return nil
	}
	m := &machine{
		At: conversion.Time(&v.At), Vendor: conversion.Text(v.Machine.Vendor), Product: conversion.Text(v.Machine.Product), Firmware: conversion.Text(v.Machine.Firmware),
		Architecture: conversion.Text(v.Machine.Architecture), Kind: conversion.Text(v.Machine.Kind), Processor: conversion.Text(v.Processor.Model),
		Sockets: number(v.Processor.Sockets), Cores: number(v.Processor.Cores), Threads: number(v.Processor.Threads), MemoryBytes: number(v.MemoryBytes),
		Disks: []disk{}, Interfaces: []network{},
	}
	for _, d := range v.Disks {
		m.Disks = append(m.Disks, disk{types.StringValue(d.Name), conversion.Text(d.Model), number(d.Bytes), types.BoolValue(d.Rotational), types.BoolValue(d.Removable)})
	}
	for _, n := range v.Interfaces {
		m.Interfaces = append(m.Interfaces, network{types.StringValue(n.Name), conversion.Text(n.MAC), append([]string{}, n.Addresses...)})
	}
	return m
}

// number is null for 0, which stands for what the machine does not tell.
func number[T int | int64](n T) types.Int64 {
	if n == 0 {
		return types.Int64Null()
	}
	return types.Int64Value(int64(n))
}

func inventoryAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"at":           tenantobject.ComputedText("When the host told it (RFC 3339)."),
		"vendor":       tenantobject.ComputedText("The vendor of the machine; null if it does not tell."),
		"product":      tenantobject.ComputedText("The product, such as `PowerEdge R640`; null if the machine does not tell."),
		"firmware":     tenantobject.ComputedText("The vendor and version of the firmware; null if the machine does not tell."),
		"architecture": tenantobject.ComputedText("The architecture, such as `amd64` or `arm64`."),
		"kind":         tenantobject.ComputedText("`physical`, `virtual` or `container`."),
		"processor":    tenantobject.ComputedText("The model of the processors; null if they do not tell."),
		"sockets":      tenantobject.ComputedNumber("How many processors there are; null if they do not tell."),
		"cores":        tenantobject.ComputedNumber("How many cores they have; null if they do not tell."),
		"threads":      tenantobject.ComputedNumber("How many processors the kernel can use."),
		"memory_bytes": tenantobject.ComputedNumber("The memory that the kernel can use, in bytes."),
		"disks": tenantobject.ComputedObjects("The disks, sorted by name.", map[string]schema.Attribute{
			"name":       tenantobject.ComputedText("The name, such as `nvme0n1`."),
			"model":      tenantobject.ComputedText("The model; null if the disk does not tell."),
			"bytes":      tenantobject.ComputedNumber("The size in bytes."),
			"rotational": tenantobject.ComputedBool("Whether the kernel takes it for a disk that rotates."),
			"removable":  tenantobject.ComputedBool("Whether it is removable."),
		}),
		"interfaces": tenantobject.ComputedObjects("The network interfaces with a device or an address of their own, sorted by name.", map[string]schema.Attribute{
			"name": tenantobject.ComputedText("The name, such as `eno1`."),
			"mac":  tenantobject.ComputedText("The hardware address; null if there is none."),
			"addresses": schema.ListAttribute{
				ElementType: types.StringType, Computed: true,
				MarkdownDescription: "The global addresses with their prefixes, such as `192.0.2.7/24`, without temporary ones.",
			},
		}),
	}
}
