// SPDX-License-Identifier: Apache-2.0
//go:build tools

package engine

import _ "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
