#pragma once

#define ADS_VERSION "0.1.0"
