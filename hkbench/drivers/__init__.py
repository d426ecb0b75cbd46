"""What the drivers' management libraries say of devices: clocks, power, temperature, use. No context is made on any."""
